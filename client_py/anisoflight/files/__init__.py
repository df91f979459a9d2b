"""Files: schedules and plans that are kept, measurements under locks, and folders that go again."""
