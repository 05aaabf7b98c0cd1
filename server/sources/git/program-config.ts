// The configuration of every run of the git program: nothing comes from this machine's configuration or environment.

/**
 * No other configuration than this; memory of a few threads less, no hooks, no background work, and never another
 * server than the given one.
 */
const CONFIG: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'protocol.version': '2',
  'fetch.unpackLimit': '1',
  'pack.threads': '1',
  'core.packedGitWindowSize': '16m',
  'core.packedGitLimit': '128m',
  'core.deltaBaseCacheLimit': '32m',
  'core.bigFileThreshold': '16m',
  'http.followRedirects': 'false',
  'submodule.recurse': 'false',
}
/** Only for fetches: a read must not ask the network for missing objects. */
export const PARTIAL: Readonly<Record<string, string>> = {
  'remote.origin.promisor': 'true',
  'remote.origin.partialclonefilter': 'blob:none',
}

export const flags = (config: Readonly<Record<string, string>>): string[] =>
  Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`])

export const OWN_FLAGS: readonly string[] = flags(CONFIG)

/** No other environment than this, followed by the additions of a run. */
export const OWN_ENV: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_NO_LAZY_FETCH: '1',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_ALLOC_LIMIT: '256m', // what a few bytes of a pack can ask for at once
  GIT_ALLOW_PROTOCOL: 'none',
}
