// The words of rights. Apart from their schemas, because the command line names them before it loads any.

/** Verbs of rights. `read`, `write` and `delete` apply to every kind; each of the others belongs to the kinds named
 *  here. */
export const ACCESS_VERBS = [
  'read',
  'write',
  'delete',
  'secret:write', // Config: set a secret value
  'config:use', // Config: name it in a service or repository
  'render', // Service: see rendered objects
  'sync', // Service, Repository
  'confirm', // Service
  'live:read', // Service, Cluster: read live objects, their children and events, nodes; try a revision
  'logs:read', // Service, Cluster: read logs of Pods
  'restart', // Service, Cluster: restart the Pods of a workload
  'suspend', // Service, Cluster
  'join-token:create', // JoinToken
  'cluster:label', // Cluster: labels decide which services a cluster receives
  'webhook:read', // Repository: the address of the webhook, and a new secret
  'server-key', // Server
  'profile', // Server: profiles of processor time and memory
  'restore', // Server
  'token:read', // ApiToken
  'token:create', // ApiToken
  'token:revoke', // ApiToken
  'audit:read', // Audit
  'notify:test', // NotificationSink: send a test message, send a failed message again
] as const
export type AccessVerb = (typeof ACCESS_VERBS)[number]

/** Kinds whose objects belong to a project. A Project is its own project. */
export const PROJECT_KINDS = [
  'Project',
  'Repository',
  'Service',
  'Config',
  'HealthRule',
  'RoleBinding',
  'Audit',
  'NotificationSink',
  'NotificationRoute',
] as const
export const FLEET_KINDS = ['Cluster', 'Role', 'JoinToken', 'ApiToken', 'Agent', 'Server', 'SavedQuery'] as const
export const ACCESS_KINDS = [...PROJECT_KINDS, ...FLEET_KINDS] as const
export type AccessKind = (typeof ACCESS_KINDS)[number]
