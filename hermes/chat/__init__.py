"""The phone: all that Hermes knows of Telegram.

`render` says what an entry looks like, purely. Behind it stand `text` (units, cleaning, cutting), `buttons`
(what they say and carry), `screen` (values, common phrases), `page`, `review`, `ending`, `sides` and `words`.
The other modules carry it to the phone, and bring back what the person tapped and wrote.
"""
