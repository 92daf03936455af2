package repo

// NewEntryID is newEntryID, for the test of its collisions.
var NewEntryID = newEntryID
