package repo

import (
	"database/sql/driver"
	"net/url"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// NewEntryID is newEntryID, for the test of its collisions.
var NewEntryID = newEntryID

// Wrap gives an archive other connections: those that wrap makes of its own.
func (a *Archive) Wrap(wrap func(driver.Connector) driver.Connector) error {
	for _, pool := range []struct {
		db           **sqlx.DB
		path, attach string
		n            int
		params       url.Values
	}{
		{&a.write, a.path, "", 1, url.Values{"_txlock": {"immediate"}}},
		{&a.index, a.IndexPath(), "", 1, url.Values{"_txlock": {"immediate"}}},
		{&a.read, a.path, a.IndexPath(), 4, url.Values{"_query_only": {"1"}}},
	} {
		pool.params.Set("_busy_timeout", busyTimeout)
		pool.params.Set("_foreign_keys", "1")
		base, err := sqlite.NewConnector(fileURI(pool.path, pool.params))
		if err != nil {
			return err
		}
		if err := (*pool.db).Close(); err != nil {
			return err
		}
		*pool.db = openConnector(wrap(connector{base, pool.attach}), pool.n)
	}
	a.prepared = statements{}
	return nil
}
