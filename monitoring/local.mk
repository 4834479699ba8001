# SPDX-License-Identifier: LGPL-2.1-or-later
# What Prometheus, Grafana and the journal read
monitoringdir = $(pkgdatadir)/monitoring
dist_monitoring_DATA = \
	monitoring/octavo-dashboard.json \
	monitoring/octavo.rules.yml \
	monitoring/prometheus.yml
catalogdir = $(prefix)/lib/systemd/catalog
dist_catalog_DATA = monitoring/octavo.catalog
EXTRA_DIST += monitoring/octavo.rules.test.yml
