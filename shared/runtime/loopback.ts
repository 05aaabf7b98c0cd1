// Hosts that are this machine: only these may be reached over plain HTTP, or without TLS. A file of its own, because
// pages of the dashboard import it, too.

/** `hostname`: of a URL, or of a connection, where an IPv6 address has no brackets. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i.test(hostname)
