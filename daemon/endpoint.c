// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/endpoint.h"

#include <libsoup/soup.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "daemon/metrics.h"
#include "daemon/page-resource.h"
#include "daemon/status.h"

#define PAGE_PATH	"/org/octavo1/status.html"
/* A refused body up to here is read, so that the client gets its answer. */
#define ENDPOINT_BODY_BYTES	65536

/* One connection. */
struct endpoint_visit {
	unsigned int *connections;	/* a reference to the endpoint's number of them (g_rc_box) */
	GSocket *socket;
	guint deadline;			/* GSource, or 0 */
};

struct endpoint {
	endpoint_source_fn source;
	void *data;
	GBytes *page;
	char *page_policy;		/* its Content-Security-Policy */
	char *address;			/* where it listens, or NULL */
	unsigned int port;
	bool loopback;
	GSocketService *service;
	SoupServer *server;
	unsigned int *connections;	/* their number; each visit holds a reference (g_rc_box) */
};

/* ---- answers ---- */

/* The hash of what is between <TAG> and </TAG>, as a policy wants it: this one text may run. */
static char *endpoint_hash(const char *page, const char *tag)
{
	g_autofree char *open = g_strdup_printf("<%s>", tag);
	g_autofree char *close = g_strdup_printf("</%s>", tag);
	g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
	const char *begin = strstr(page, open);
	const char *end = begin ? strstr(begin, close) : NULL;
	guint8 digest[32];
	gsize length = sizeof(digest);
	g_autofree char *text = NULL;

	g_assert(end);
	begin += strlen(open);
	g_checksum_update(checksum, (const guchar *)begin, end - begin);
	g_checksum_get_digest(checksum, digest, &length);
	text = g_base64_encode(digest, length);
	return g_strdup_printf("'sha256-%s'", text);
}

static char *endpoint_page_policy(GBytes *bytes)
{
	const char *page = g_bytes_get_data(bytes, NULL);
	g_autofree char *style = endpoint_hash(page, "style");
	g_autofree char *script = endpoint_hash(page, "script");

	return g_strdup_printf("default-src 'none'; script-src %s; style-src %s; connect-src 'self'; "
			       "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			       script, style);
}

static void endpoint_answer(SoupServerMessage *message, unsigned int status, const char *type,
			    GBytes *body, const char *policy)
{
	SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);

	soup_server_message_set_status(message, status, NULL);
	soup_message_headers_set_content_type(headers, type, NULL);
	soup_message_headers_replace(headers, "Content-Security-Policy",
				     policy ? policy : "default-src 'none'; frame-ancestors 'none'");
	soup_message_headers_replace(headers, "X-Content-Type-Options", "nosniff");
	soup_message_headers_replace(headers, "Referrer-Policy", "no-referrer");
	soup_message_headers_replace(headers, "Cache-Control", "no-store");
	/* what SoupServer does with connections that are not its own listeners' */
	soup_message_headers_replace(headers, "Connection", "close");
	soup_message_body_append_bytes(soup_server_message_get_response_body(message), body);
}

static void endpoint_refuse(SoupServerMessage *message, unsigned int status, const char *text)
{
	g_autoptr(GBytes) body = g_bytes_new_static(text, strlen(text));

	endpoint_answer(message, status, "text/plain; charset=utf-8", body, NULL);
}

/* A browser sends the name that its page asked for: on loopback a stranger's name is a stranger. */
static bool endpoint_host_is_ours(const struct endpoint *endpoint, SoupServerMessage *message)
{
	const char *host = g_uri_get_host(soup_server_message_get_uri(message));

	return !endpoint->loopback || !host || !*host || g_hostname_is_ip_address(host) ||
	       g_ascii_strcasecmp(host, "localhost") == 0;
}

/* SoupServer answers when it has read the body, which need not have an end. */
static void endpoint_refuse_body(SoupServerMessage *message, SoupEncoding encoding, goffset length)
{
	const struct endpoint_visit *visit =
		g_object_get_data(G_OBJECT(soup_server_message_get_remote_address(message)), "visit");

	soup_message_body_set_accumulate(soup_server_message_get_request_body(message), FALSE);
	if (encoding == SOUP_ENCODING_CHUNKED || length > ENDPOINT_BODY_BYTES)
		g_socket_shutdown(visit->socket, TRUE, FALSE, NULL);
	endpoint_refuse(message, SOUP_STATUS_REQUEST_ENTITY_TOO_LARGE,
			"octavod takes no request bodies\n");
}

/* Runs when the headers are there; for what is refused here no handler runs. */
static void endpoint_early(SoupServer *server, SoupServerMessage *message, const char *path,
			   GHashTable *query, void *data)
{
	const struct endpoint *endpoint = data;
	SoupMessageHeaders *request = soup_server_message_get_request_headers(message);
	const char *method = soup_server_message_get_method(message);
	SoupEncoding encoding = soup_message_headers_get_encoding(request);
	goffset length = soup_message_headers_get_content_length(request);

	(void)server;
	(void)path;
	(void)query;
	if (encoding == SOUP_ENCODING_CHUNKED || length > 0) {
		endpoint_refuse_body(message, encoding, length);
	} else if (!g_str_equal(method, "GET") && !g_str_equal(method, "HEAD")) {
		endpoint_refuse(message, SOUP_STATUS_METHOD_NOT_ALLOWED,
				"octavod answers GET and HEAD here\n");
		soup_message_headers_replace(soup_server_message_get_response_headers(message),
					     "Allow", "GET, HEAD");
	} else if (!endpoint_host_is_ours(endpoint, message)) {
		endpoint_refuse(message, SOUP_STATUS_FORBIDDEN,
				"octavod answers for an IP address or localhost while it listens on loopback\n");
	}
}

static void endpoint_metrics(struct endpoint *endpoint, SoupServerMessage *message)
{
	struct snapshot *snapshot = endpoint->source(false, endpoint->data);
	GString *text = g_string_sized_new(32768);
	g_autoptr(GBytes) body = NULL;

	metrics_render(snapshot, text);
	snapshot_free(snapshot);
	body = g_string_free_to_bytes(text);
	endpoint_answer(message, SOUP_STATUS_OK, METRICS_CONTENT_TYPE, body, NULL);
}

static void endpoint_status(struct endpoint *endpoint, SoupServerMessage *message)
{
	struct snapshot *snapshot = endpoint->source(true, endpoint->data);
	char *text = status_render(snapshot);
	g_autoptr(GBytes) body = g_bytes_new_take(text, strlen(text));

	snapshot_free(snapshot);
	endpoint_answer(message, SOUP_STATUS_OK, "application/json", body, NULL);
}

static void endpoint_request(SoupServer *server, SoupServerMessage *message, const char *path,
			     GHashTable *query, void *data)
{
	struct endpoint *endpoint = data;

	(void)server;
	(void)query;
	if (g_str_equal(path, "/metrics"))
		endpoint_metrics(endpoint, message);
	else if (g_str_equal(path, "/status.json"))
		endpoint_status(endpoint, message);
	else if (g_str_equal(path, "/"))
		endpoint_answer(message, SOUP_STATUS_OK, "text/html; charset=utf-8", endpoint->page,
				endpoint->page_policy);
	else
		endpoint_refuse(message, SOUP_STATUS_NOT_FOUND,
				"there are /, /metrics and /status.json\n");
}

/* ---- connections ---- */

static void endpoint_visit_ended(void *data, GObject *connection)
{
	struct endpoint_visit *visit = data;

	(void)connection;
	(*visit->connections)--;
	g_rc_box_release(visit->connections);
	if (visit->deadline)
		g_source_remove(visit->deadline);
	g_object_unref(visit->socket);
	g_free(visit);
}

/* It sends or takes a byte now and then, so it was never idle. */
static gboolean endpoint_visit_overdue(void *data)
{
	struct endpoint_visit *visit = data;

	visit->deadline = 0;
	g_socket_shutdown(visit->socket, TRUE, TRUE, NULL);
	return G_SOURCE_REMOVE;
}

static void endpoint_visit_begin(struct endpoint *endpoint, GSocketConnection *connection,
				 GSocketAddress *remote)
{
	struct endpoint_visit *visit = g_new0(struct endpoint_visit, 1);

	visit->connections = g_rc_box_acquire(endpoint->connections);
	visit->socket = g_object_ref(g_socket_connection_get_socket(connection));
	visit->deadline = g_timeout_add_seconds(ENDPOINT_VISIT_SECONDS, endpoint_visit_overdue, visit);
	(*visit->connections)++;
	g_socket_set_timeout(visit->socket, ENDPOINT_IDLE_SECONDS);
	/* headers and body are two writes */
	g_socket_set_option(visit->socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
	/* handlers are told the address, and nothing else of the connection */
	g_object_set_data(G_OBJECT(remote), "visit", visit);
	g_object_weak_ref(G_OBJECT(connection), endpoint_visit_ended, visit);
}

static gboolean endpoint_incoming(GSocketService *service, GSocketConnection *connection,
				  GObject *source, void *data)
{
	struct endpoint *endpoint = data;
	g_autoptr(GSocketAddress) local = NULL, remote = NULL;
	g_autoptr(GError) error = NULL;

	(void)service;
	(void)source;
	if (*endpoint->connections >= ENDPOINT_CONNECTIONS) {
		g_debug("metrics: more than %u connections: one is closed", ENDPOINT_CONNECTIONS);
		return TRUE;
	}
	local = g_socket_connection_get_local_address(connection, NULL);
	remote = g_socket_connection_get_remote_address(connection, NULL);
	if (!local || !remote)
		return TRUE;
	endpoint_visit_begin(endpoint, connection, remote);
	if (!soup_server_accept_iostream(endpoint->server, G_IO_STREAM(connection), local, remote,
					 &error))
		g_debug("metrics: %s", error->message);
	return TRUE;
}

/* ---- life ---- */

struct endpoint *endpoint_new(endpoint_source_fn source, void *data)
{
	struct endpoint *endpoint = g_new0(struct endpoint, 1);

	endpoint->source = source;
	endpoint->data = data;
	endpoint->connections = g_rc_box_new0(unsigned int);
	endpoint->page = g_resource_lookup_data(page_get_resource(), PAGE_PATH,
						G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
	g_assert(endpoint->page);
	endpoint->page_policy = endpoint_page_policy(endpoint->page);
	return endpoint;
}

static void endpoint_close(struct endpoint *endpoint)
{
	if (!endpoint->service)
		return;
	g_socket_service_stop(endpoint->service);
	g_socket_listener_close(G_SOCKET_LISTENER(endpoint->service));
	g_clear_object(&endpoint->service);
	soup_server_disconnect(endpoint->server);
	g_clear_object(&endpoint->server);
	g_clear_pointer(&endpoint->address, g_free);
	endpoint->port = 0;
}

void endpoint_free(struct endpoint *endpoint)
{
	if (!endpoint)
		return;
	endpoint_close(endpoint);
	g_bytes_unref(endpoint->page);
	g_free(endpoint->page_policy);
	g_rc_box_release(endpoint->connections);
	g_free(endpoint);
}

static bool endpoint_open(struct endpoint *endpoint, const char *address, unsigned int port,
			  GError **error)
{
	g_autoptr(GSocketAddress) socket_address =
		g_inet_socket_address_new_from_string(address, port);
	g_autoptr(GSocketService) service = g_socket_service_new();
	g_autoptr(GInetAddress) inet = g_inet_address_new_from_string(address);

	if (!socket_address || !inet) {
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT, "'%s' is no IP address",
			    address);
		return false;
	}
	g_socket_listener_set_backlog(G_SOCKET_LISTENER(service), 2 * ENDPOINT_CONNECTIONS);
	if (!g_socket_listener_add_address(G_SOCKET_LISTENER(service), socket_address,
					   G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL, NULL,
					   error)) {
		g_prefix_error(error, "cannot listen on port %u of %s for metrics: ", port, address);
		return false;
	}
	endpoint->server = soup_server_new(NULL, NULL);
	soup_server_add_early_handler(endpoint->server, NULL, endpoint_early, endpoint, NULL);
	soup_server_add_handler(endpoint->server, NULL, endpoint_request, endpoint, NULL);
	endpoint->service = g_steal_pointer(&service);
	endpoint->address = g_strdup(address);
	endpoint->port = port;
	endpoint->loopback = g_inet_address_get_is_loopback(inet);
	g_signal_connect(endpoint->service, "incoming", G_CALLBACK(endpoint_incoming), endpoint);
	return true;
}

bool endpoint_listen(struct endpoint *endpoint, const char *address, unsigned int port,
		     GError **error)
{
	g_autofree char *old_address = g_strdup(endpoint->address);
	unsigned int old_port = endpoint->port;

	if (port == old_port && (!port || g_str_equal(address, old_address)))
		return true;
	/* closed first: 127.0.0.1 and 0.0.0.0 cannot both have a port */
	endpoint_close(endpoint);
	if (!port || endpoint_open(endpoint, address, port, error))
		return true;
	if (old_port)
		endpoint_open(endpoint, old_address, old_port, NULL);
	return false;
}
