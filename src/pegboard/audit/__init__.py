"""The audit: who called what, when and with which outcome; what was refused; and what was changed."""
