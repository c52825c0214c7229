"""Running in the background: a service of systemd, launchd or the Task Scheduler, started with the user's session."""
