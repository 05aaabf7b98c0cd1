// Reads kubeconfigs that hold certificates and tokens, in the file or beside it, which most do. It avoids
// @kubernetes/client-node, which takes 20 MB of memory. For any other kubeconfig (with a plugin, a provider or a
// mistake) it returns null, and the library reads it and reports mistakes.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { KubeAccess } from './kube-credentials.ts'

const text = z.string().min(1).nullish()

const clusterSchema = z.object({
  server: z.string().startsWith('https://'),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().nullish(),
  'tls-server-name': text,
  'proxy-url': text,
})

/** Strict, because an unknown member may be a credential. */
const userSchema = z.strictObject({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
})

const named = z.array(z.looseObject({ name: z.string().min(1) }))
const kubeconfigSchema = z.looseObject({ 'current-context': text, clusters: named, contexts: named, users: named })
const contextSchema = z.object({ cluster: z.string(), user: z.string() })

export interface PlainKubeconfig {
  /** Name of the context. */
  name: string
  server: string
  proxyUrl?: string
  /** Reads the files that the kubeconfig names. Throws errors of the file system. */
  access(): KubeAccess
}

export function readPlainKubeconfig(path: string, context: string | undefined): PlainKubeconfig | null {
  const config = kubeconfigSchema.safeParse(onlyDocument(path)).data
  const name = context ?? config?.['current-context']
  if (config === undefined || !name) return null
  const chosen = contextSchema.safeParse(pick(config.contexts, name)?.['context']).data
  const cluster = clusterSchema.safeParse(pick(config.clusters, chosen?.cluster)?.['cluster']).data
  const user = userSchema.safeParse(pick(config.users, chosen?.user)?.['user']).data
  if (cluster === undefined || user === undefined) return null
  const proxyUrl = cluster['proxy-url']
  return {
    name,
    server: cluster.server,
    ...(proxyUrl ? { proxyUrl } : {}),
    access: () => accessOf(cluster, user, dirname(path)),
  }
}

/** Null for anything but one YAML document. */
function onlyDocument(path: string): unknown {
  try {
    const { documents, problems } = parseYamlDocuments(readFileSync(path, 'utf8'), { file: path })
    return problems.length === 0 && documents.length === 1 ? documents[0]?.value : null
  } catch {
    return null
  }
}

/** A name that occurs twice is a mistake, which the library reports. */
function pick(all: z.infer<typeof named>, name: string | undefined): z.infer<typeof named>[number] | undefined {
  const found = all.filter((item) => item.name === name)
  return found.length === 1 ? found[0] : undefined
}

function accessOf(cluster: z.infer<typeof clusterSchema>, user: z.infer<typeof userSchema>, folder: string): KubeAccess {
  const pem = (data: string | null | undefined, file: string | null | undefined): string | undefined =>
    data ? Buffer.from(data, 'base64').toString() : file ? readFileSync(resolve(folder, file), 'utf8') : undefined
  const ca = pem(cluster['certificate-authority-data'], cluster['certificate-authority'])
  const cert = pem(user['client-certificate-data'], user['client-certificate'])
  const key = pem(user['client-key-data'], user['client-key'])
  const serverName = cluster['tls-server-name']
  const token = user.tokenFile ? readFileSync(resolve(folder, user.tokenFile), 'utf8').trim() : user.token
  const basic = user.username ? `Basic ${Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64')}` : null
  return {
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(serverName ? { serverName } : {}),
      insecure: cluster['insecure-skip-tls-verify'] === true,
    },
    authorization: token ? `Bearer ${token}` : basic,
    ...(user.as ? { impersonateUser: user.as } : {}),
  }
}
