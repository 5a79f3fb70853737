"""Decisions, pure: what the person does, which ask a text or a permission belongs to, and what time does."""
