"""All pauses and grace times of an errand, in seconds, and the reason of each."""

from typing import Final

FIRST_RETRY_S: Final = 0.5
"""The pause after the first failure; each further one takes twice as long."""
LONGEST_RETRY_S: Final = 30.0
CONFIRM_S: Final = 0.05
"""The first pause before another look at an accepted reply that shows no effect yet; each further one is longer."""
OPEN_S: Final = 5.0
"""The verdict "still open" is a reason to send for this long: a full disk may hold up what comes before."""
UNCONFIRMED_S: Final = 3.0
"""An accepted reply that shows no effect for this long is sent again."""
QUIET_LOOK_S: Final = 1.0
"""An ask that is still listed after its session stopped is looked at again after this long: lists lag behind."""
HOOK_LOOK_S: Final = 1.0
"""The pause between two looks for a hook that has to take an answer."""
HOOK_GRACE_S: Final = 30.0
"""A plugin that starts a dead hook again does so within this time."""
LEFT_GRACE_S: Final = 2.0
"""A hook that its agent left is not started again; another hook may have taken its place already."""
PLACES_GRACE_S: Final = 30.0
"""Waiting hooks take their places again within this time after the folder of the store was made again."""
UNTAKEN_S: Final = 6.0
"""A text that lies ready for longer than this is not delivered for now, and the phone says so."""
LAY_AGAIN_S: Final = 3.0
"""A hook needs less than this from taking its text to leaving."""
NO_EFFECT_S: Final = 20.0
"""Texts that hooks keep taking for this long without an effect are not delivered for now, and the phone says so."""
TAKEN_GRACE_S: Final = 20.0
"""The plugin of a hook that took its text reports the result within this time."""
TOGETHER_S: Final = 30.0
"""A permission that ends this soon after the answer to another one of its session was ended by that answer."""
LATE_ASK_S: Final = 5.0
"""A permission may become known so long after the refusal of another one of its session that ended it, too."""
UNMATCHED_LOOK_S: Final = 5.0
"""The pause between two looks for the request of a call, once all quick tries were in vain."""
