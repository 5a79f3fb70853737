"""Another program with the same bot: a plain python-telegram-bot, which polls, and tries again when it is thrown out.

python -m tests.commands.doctor.rival BASE_URL, with the token on standard input
"""

import sys
import warnings

from telegram.ext import Application
from telegram.warnings import PTBUserWarning


def main() -> None:
    """Poll until killed."""
    warnings.simplefilter("ignore", PTBUserWarning)
    token = sys.stdin.readline().strip()
    Application.builder().token(token).base_url(f"{sys.argv[1]}/bot").build().run_polling()


if __name__ == "__main__":
    main()
