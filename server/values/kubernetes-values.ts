// Values in Secrets of the namespace in which the server runs. A Secret says itself which projects may read it: whoever
// writes a Config does not decide that.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { ValueSource } from '../../shared/model/render.ts'
import { checkedValue, ValueError, type ValueReader } from './value-source.ts'

/** Names of projects, separated by commas; `*`: all of them. */
export const PROJECTS_ANNOTATION = 'skerry.dev/value-projects'

export interface KubernetesPlace {
  /** `https://10.0.0.1:443`. */
  url: string
  namespace: string
  /** Read again for each request: the kubelet replaces it. */
  token(): string
  ca?: string | undefined
}

const ANSWER_MS = 10_000
const secretSchema = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string().default(''), annotations: z.record(z.string(), z.string()).optional() }),
  data: z.record(z.string(), z.base64()).optional(),
})
type Secret = z.infer<typeof secretSchema>

export function createKubernetesValues(
  place: KubernetesPlace,
  fetcher: (url: string, init: BunFetchRequestInit) => Promise<Response>,
): ValueReader {
  const { namespace } = place
  const get = async (name: string): Promise<Secret> => {
    const answer = await fetcher(`${place.url}/api/v1/namespaces/${namespace}/secrets/${name}`, {
      headers: { authorization: `Bearer ${place.token()}`, accept: 'application/json' },
      ...(place.ca === undefined ? {} : { tls: { ca: place.ca } }),
      signal: AbortSignal.timeout(ANSWER_MS),
    }).catch((error: unknown) => {
      throw new ValueError(`cannot reach the Kubernetes API: ${error instanceof Error ? error.name : 'unknown error'}`)
    })
    const at = `Secret ${name} in namespace ${namespace}`
    if (answer.status === 404) throw new ValueError(`${at} does not exist`)
    if (answer.status === 401 || answer.status === 403) throw new ValueError(`the service account of the server may not read ${at}`)
    if (answer.status !== 200) throw new ValueError(`the Kubernetes API answers ${at} with status ${answer.status}`)
    return secretSchema.parse(await answer.json())
  }
  return {
    async read({ project }, sources) {
      const read = new Map<string, ReturnType<typeof checkedValue>>()
      const secrets = new Map<string, Promise<Secret>>()
      for (const { name, kubernetesSecret: of } of sources) {
        if (of === undefined) continue
        const asked = secrets.get(of.name) ?? get(of.name)
        secrets.set(of.name, asked)
        const value = asked.then(
          (secret) => valueIn(secret, of, project),
          (error: unknown) => (error instanceof ValueError ? error : new ValueError(`the answer for Secret ${of.name} is not valid`)),
        )
        read.set(name, await value)
      }
      return read
    },
  }
}

function valueIn({ metadata, data = {} }: Secret, { name, key }: NonNullable<ValueSource['kubernetesSecret']>, project: string) {
  const allowed = (metadata.annotations?.[PROJECTS_ANNOTATION] ?? '').split(',').map((one) => one.trim())
  if (!allowed.includes(project) && !allowed.includes('*'))
    return new ValueError(`the annotation ${PROJECTS_ANNOTATION} of Secret ${name} does not name project ${project}`)
  if (!Object.hasOwn(data, key)) return new ValueError(`Secret ${name} has no key ${key}`)
  const bytes = Buffer.from(data[key] ?? '', 'base64')
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes)
    ? checkedValue(text, metadata.resourceVersion)
    : new ValueError(`${key} of Secret ${name} is not UTF-8 text`)
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Where a Pod finds its API. Null means that this is none. */
export function readKubernetesPlace(env: Readonly<Record<string, string | undefined>>, folder = SERVICE_ACCOUNT): KubernetesPlace | null {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (host === undefined) return null
  const read = (name: string) => readFileSync(`${folder}/${name}`, 'utf8').trim()
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: read('namespace'),
    token: () => read('token'),
    ca: read('ca.crt'),
  }
}
