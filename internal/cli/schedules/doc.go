// Package schedules has the commands that list, show, make and compare noise schedules. Each is a client of a server.
package schedules
