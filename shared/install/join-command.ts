// The command that installs the agent of a new cluster, in three forms. Pure, so that the command line and the
// dashboard print the same.
import { isLoopback } from '../runtime/loopback.ts'
import { type AgentSite, agentManifests } from './agent-manifest.ts'

export const JOIN_FORMS = ['helm', 'manifest', 'node'] as const
export type JoinForm = (typeof JOIN_FORMS)[number]

export const JOIN_NAMESPACE = 'skerry-system'
export const JOIN_CHART = 'charts/skerry-agent'
export const JOIN_IMAGE = 'skerry-agent'

/** Where a person runs the command of a form, for "Run this command where …". */
export const JOIN_PLACES: Record<JoinForm, string> = {
  helm: 'helm can reach the cluster',
  manifest: 'kubectl can reach the cluster',
  node: 'the node runs, as root, after the package skerry-agent was installed',
}

export const isClusterName = (name: string): boolean => /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)

export const isLoopbackServer = (text: string): boolean => isLoopback(URL.parse(text)?.hostname ?? '')

/** The problem of a server URL for an agent, or null. */
export function agentUrlProblem(text: string, insecureHttp: boolean): string | null {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return `an agent cannot use the server URL ${text}: set --url https://HOST`
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !insecureHttp)
    return `agents refuse ${text}: set --url https://HOST, or --insecure-http if the network protects the link`
  return null
}

export const withTag = (image: string, version: string): string => (/[:@][^/]*$/.test(image) ? image : `${image}:${version}`)

export interface JoinSources {
  /** Folder, archive or oci:// reference. */
  chart: string
  /** One manifest as YAML; JSON is YAML, too. */
  document(manifest: object): string
}

/** For a POSIX shell. It has the join token in it. */
export function joinCommand(form: JoinForm, site: AgentSite, { chart, document }: JoinSources): string {
  if (form === 'manifest')
    return `kubectl apply --server-side -f - <<'SKERRY'\n${agentManifests(site)
      .map((one) => `${document(one).trimEnd()}\n`)
      .join('---\n')}SKERRY`
  return form === 'helm' ? helmCommand(site, chart) : nodeCommand(site)
}

function helmCommand({ server, cluster, token, image, namespace, insecureHttp, ca }: AgentSite, chart: string): string {
  const [, repository = image, tag = ''] = /^(.*?)(?::([^/:]+))?$/.exec(image) ?? []
  const values = {
    ...{ server, cluster, 'joinToken.value': token, 'image.repository': repository, 'image.tag': tag },
    ...(insecureHttp ? { insecureHttp: 'true' } : {}),
    ...(ca === undefined ? {} : { 'serverCa.pem': ca }),
  }
  const sets = Object.entries(values).map(
    ([key, value]) => `--set${key === 'insecureHttp' ? '' : '-string'} ${quoted(`${key}=${forHelm(value)}`)}`,
  )
  return [`helm upgrade --install skerry-agent ${quoted(chart)} -n ${namespace} --create-namespace`, ...sets].join(' \\\n  ')
}

const nodeCommand = ({ server, cluster, token, insecureHttp, ca }: AgentSite): string =>
  [
    `skerry-agent install --server ${quoted(server)} --cluster ${quoted(cluster)} --join-token ${quoted(token)}`,
    ...(insecureHttp ? ['--insecure-http'] : []),
    ...(ca === undefined ? [] : [`--server-ca-pem ${quoted(ca)}`]),
  ].join(' ')

/** Commas and backslashes divide values in --set. */
const forHelm = (value: string): string => value.replace(/[\\,]/g, '\\$&')

const quoted = (text: string): string => (/^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
