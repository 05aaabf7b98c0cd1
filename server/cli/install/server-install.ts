// `skerry install` and `skerry uninstall`: a server in a cluster, put there and taken away with kubectl.
import { z } from 'zod'
import { toYaml } from '../../../shared/adapters/yaml.ts'
import { signInLinkSchema } from '../../../shared/model/sign-in.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Context, Output } from '../context.ts'
import { askEach, UsageError } from '../io.ts'
import { documentText } from '../printing/documents.ts'
import { createKubectl, type Kubectl, type KubectlPlace } from './kubectl.ts'
import { CLAIM, RELEASE, SELECTOR_TEXT, SERVER_KINDS, type ServerSite, serverManifests, serverUrl } from './server-manifest.ts'

export interface InstallOptions {
  place: KubectlPlace
  site: ServerSite
  timeoutSeconds: number
  dryRun: boolean
  output: Output | undefined
}

/** Running it again changes what differs, and prints another link. */
export async function installServer(context: Context, { place, site, timeoutSeconds, dryRun, output }: InstallOptions): Promise<void> {
  const { io } = context
  checkSite(site)
  const manifests = serverManifests(site)
  if (dryRun) {
    io.stdout.write(manifests.map(toYaml).join('---\n'))
    return
  }
  const kubectl = createKubectl(io, place)
  await refuseReleaseOfHelm(kubectl, site.namespace, 'helm upgrade')
  const namespace = await kubectl.run(['get', 'namespace', site.namespace, '--ignore-not-found', '-o', 'name'], {
    doing: 'read the cluster',
  })
  // A Namespace that exists may have labels and Pods of others.
  const isMade = namespace.trim() === ''
  const items = { apiVersion: 'v1', kind: 'List', items: isMade ? manifests : manifests.slice(1) }
  const applied = await kubectl.run(['apply', '--server-side', '--field-manager=skerry-install', '-f', '-'], {
    ...{ doing: 'install the server', stdin: JSON.stringify(items) },
  })
  io.stderr.write(applied)
  await waitUntilReady(context, kubectl, site.namespace, timeoutSeconds)
  const link = await signInLink(kubectl, site)
  const isInside = site.url === undefined
  const local = new URL(serverUrl(site))
  // The Service has no address outside the cluster: people reach it through kubectl.
  if (isInside) local.hostname = '127.0.0.1'
  if (isInside) local.port = LOCAL_PORT
  const shown = {
    url: serverUrl(site),
    signIn: { ...link, url: isInside ? link.url.replace(/^https?:\/\/[^/]+/, local.origin) : link.url },
  }
  const document = documentText({ ...shown, namespace: site.namespace }, output)
  if (document !== null) {
    io.stdout.write(document)
    return
  }
  io.stdout.write(`server   ${shown.url}\nsign in  ${shown.signIn.url}\n`)
  io.stderr.write(
    '\nThe link signs one browser in as an administrator and is valid for ten minutes. Run the command again for another link.\n',
  )
  if (isInside)
    io.stderr.write(
      `The server has no address outside the cluster (--url sets one). Open the link while this runs:\n  ${kubectl.words} -n ${site.namespace} port-forward service/${RELEASE} ${LOCAL_PORT}:${local.protocol === 'https:' ? 443 : 80}\n`,
    )
  if (local.protocol === 'http:')
    io.stderr.write('Agents of other clusters refuse an http:// URL: set --url https://HOST with --tls-secret or --ingress-class.\n')
}

const LOCAL_PORT = '8080'

function checkSite({ url, tlsSecret, ingressClass }: ServerSite): void {
  if (ingressClass !== undefined && url === undefined) throw new UsageError('--ingress-class needs --url: the host of the Ingress')
  if (url === undefined) return
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.pathname !== '/')
    throw new UsageError(`--url ${url}: expected https://HOST, without a path`)
  if (tlsSecret !== undefined && parsed.protocol !== 'https:') throw new UsageError(`--tls-secret needs an https:// URL, not ${url}`)
}

/** Helm keeps a Secret for each release: its next upgrade would undo what is applied beside it. */
async function refuseReleaseOfHelm(kubectl: Kubectl, namespace: string, command: string): Promise<void> {
  const selector = `owner=helm,name=${RELEASE}`
  const found = await kubectl.run(['get', 'secrets', '-n', namespace, '-l', selector, '-o', 'name'], {
    doing: 'look for a release of Helm',
  })
  if (found.trim() === '') return
  throw new AppError('conflict', {
    detail: `Helm manages the release ${RELEASE} in the namespace ${namespace}`,
    remedy: `Use \`${command} ${RELEASE} -n ${namespace}\`.`,
  })
}

const podsSchema = z.object({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({ name: z.string() }),
      status: z
        .looseObject({
          phase: z.string().optional(),
          conditions: z.array(z.looseObject({ type: z.string(), status: z.string(), message: z.string().optional() })).optional(),
          containerStatuses: z
            .array(
              z.looseObject({
                state: z.record(z.string(), z.looseObject({ reason: z.string().optional(), message: z.string().optional() })),
              }),
            )
            .optional(),
        })
        .optional(),
    }),
  ),
})

async function waitUntilReady({ io }: Context, kubectl: Kubectl, namespace: string, timeoutSeconds: number): Promise<void> {
  io.stderr.write(`waiting for statefulset/${RELEASE}, at most ${timeoutSeconds} s\n`)
  try {
    await kubectl.run(['rollout', 'status', `statefulset/${RELEASE}`, '-n', namespace, `--timeout=${timeoutSeconds}s`], { doing: 'wait' })
  } catch {
    const pods = podsSchema.parse(
      JSON.parse(await kubectl.run(['get', 'pods', '-n', namespace, '-l', SELECTOR_TEXT, '-o', 'json'], { doing: 'read the Pod' })),
    )
    const reasons = pods.items.map(({ metadata, status }) => {
      const states = status?.containerStatuses?.flatMap(({ state }) => Object.values(state)) ?? []
      const unmet = status?.conditions?.find((one) => one.status === 'False' && one.message !== undefined)
      const [state] = states.filter(({ reason }) => reason !== undefined)
      const said = state === undefined ? unmet?.message : [state.reason, state.message].filter(Boolean).join(': ')
      return `Pod ${metadata.name} is ${said ?? status?.phase ?? 'Pending'}`
    })
    throw new AppError('unavailable', {
      ...{ doing: 'install the server', detail: `not ready within ${timeoutSeconds} s: ${reasons.join('; ') || 'it has no Pod'}` },
      remedy: `Correct it and run this again; look with: ${kubectl.words} -n ${namespace} describe pod ${RELEASE}-0`,
    })
  }
}

/** In the Pod, by its shell, so that no token is an argument. The certificate names the URL, not the loopback address
 *  that is asked here. */
async function signInLink(kubectl: Kubectl, { namespace, tlsSecret }: ServerSite): Promise<z.infer<typeof signInLinkSchema>> {
  const scheme = tlsSecret === undefined ? 'http' : 'https'
  const token = "$(/usr/bin/skerry admin-token --expires 10m --reason 'skerry install')"
  const script = [
    `SKERRY_TOKEN=${token}`,
    'export SKERRY_TOKEN NODE_TLS_REJECT_UNAUTHORIZED=0',
    `exec /usr/bin/skerry dashboard --server ${scheme}://127.0.0.1:8080 -o json`,
  ].join(' && ')
  const out = await kubectl.run(['exec', '-n', namespace, `${RELEASE}-0`, '-c', 'server', '--', '/bin/sh', '-c', script], {
    doing: 'create a sign-in link',
  })
  return signInLinkSchema.parse(JSON.parse(out))
}

export interface UninstallOptions {
  place: KubectlPlace
  namespace: string
  /** Undefined if the person is to be asked. */
  wish: 'keep' | 'prune' | undefined
}

export async function uninstallServer({ io }: Context, { place, namespace, wish }: UninstallOptions): Promise<void> {
  const kubectl = createKubectl(io, place)
  await refuseReleaseOfHelm(kubectl, namespace, 'helm uninstall')
  const find = (kinds: readonly string[]) =>
    kubectl.run(['get', kinds.join(','), '-n', namespace, '-l', SELECTOR_TEXT, '-o', 'name'], { doing: 'look for the server' })
  const found = (await find(SERVER_KINDS)).trim().split('\n').filter(Boolean)
  const claims = (await find(['persistentvolumeclaim'])).trim().split('\n').filter(Boolean)
  if (found.length + claims.length === 0)
    throw new AppError('not_found', { detail: `no server in the namespace ${namespace}`, remedy: 'Set --namespace or --context.' })
  io.stderr.write(`Deletes from the namespace ${namespace}: ${[...found, ...claims.map((one) => `with --prune ${one}`)].join(', ')}\n`)
  io.stderr.write('Agents keep enforcing what they have; no object of a service is deleted.\n')
  const chosen = wish ?? (await ask(io, namespace))
  const doomed = chosen === 'prune' ? [...found, ...claims] : found
  // Names, not the selector: what appeared since it was shown stays.
  if (doomed.length > 0)
    await kubectl.run(['delete', '-n', namespace, '--ignore-not-found', '--wait', ...doomed], { doing: 'delete the server' })
  io.stdout.write(doomed.map((one) => `${one} deleted\n`).join(''))
  const kept = [
    ...(chosen === 'keep' && claims.length > 0
      ? [`${claims.join(', ')}, with the fleet store and the keys: \`skerry install\` uses it again`]
      : []),
    `the namespace ${namespace}, with Secrets that you made`,
    'agents in the clusters, with the objects of all services',
  ]
  io.stderr.write(`Kept:\n${kept.map((one) => `  ${one}\n`).join('')}`)
}

async function ask(io: Context['io'], namespace: string): Promise<'keep' | 'prune'> {
  if (!io.isTty) throw new UsageError('not a terminal: use --keep or --prune')
  const [goes, prunes] = await askEach(io, [
    `Delete the server from the namespace ${namespace}?`,
    `Also delete the volume ${CLAIM}? The fleet store and the keys are lost, and no agent trusts a new server`,
  ])
  if (goes !== true) throw new AppError('conflict', { detail: 'not done: nothing was changed', remedy: '' })
  return prunes === true ? 'prune' : 'keep'
}
