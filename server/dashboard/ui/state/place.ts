// Where the dashboard is: its own root may be below a path that only the proxy in front of the server knows.

/** Path of the dashboard with a slash at its end; frozen, because a relative base follows the address bar. */
export const ROOT: string = new URL(document.baseURI).pathname
const SERVER = new URL('../', new URL(document.baseURI))

/** Address of a path of the server, such as `api/v1/clusters`. */
export const serverUrl = (path: string): string => new URL(path, SERVER).href
/** URL of the server for agents and the command line. */
export const SERVER_URL: string = SERVER.href.replace(/\/$/, '')

export const part = (text: string): string => encodeURIComponent(text)

/** Addresses of pages. */
export const pages = {
  fleet: (): string => ROOT,
  clusters: (query = ''): string => `${ROOT}clusters${query}`,
  cluster: (name: string): string => `${ROOT}clusters/${part(name)}`,
  services: (query = ''): string => `${ROOT}services${query}`,
  service: (project: string, name: string): string => `${ROOT}services/${part(project)}/${part(name)}`,
  placement: (cluster: string, project: string, service: string): string =>
    `${ROOT}clusters/${part(cluster)}/${part(project)}/${part(service)}`,
  render: (project: string, name: string, cluster = ''): string =>
    `${ROOT}services/${part(project)}/${part(name)}/render${queryText({ cluster })}`,
  history: (cluster: string, project?: string, service?: string): string =>
    project === undefined || service === undefined
      ? `${ROOT}clusters/${part(cluster)}/history`
      : `${ROOT}clusters/${part(cluster)}/${part(project)}/${part(service)}/history`,
  query: (sql = ''): string => `${ROOT}query${queryText({ sql })}`,
  notifications: (): string => `${ROOT}notifications`,
  repositories: (): string => `${ROOT}repositories`,
  repository: (project: string, name: string): string => `${ROOT}repositories/${part(project)}/${part(name)}`,
  needs: (): string => `${ROOT}needs-you`,
  confirmation: (id: string): string => `${ROOT}needs-you/${part(id)}`,
  activity: (query = ''): string => `${ROOT}activity${query}`,
  access: (): string => `${ROOT}access`,
  join: (): string => `${ROOT}join`,
  settings: (): string => `${ROOT}settings`,
}

export const queryText = (values: Record<string, string | undefined | null>): string => {
  const given = Object.entries(values).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== null && entry[1] !== '',
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}
