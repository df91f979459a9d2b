// Package schedules has the commands on noise schedules: list and show them, make them in every way there is, and bench
// them. Each is a client of a server.
package schedules
