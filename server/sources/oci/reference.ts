// How a registry is spoken to in texts: references, challenges, links, media types. Text in, values out.

export interface OciPlace {
  /** With port; where its API is. */
  host: string
  /** `team/charts/shop`. */
  repository: string
}

/**
 * Splits `oci://host/path`, which the schema of a Repository has checked. Docker Hub's API has another host than its
 * name says.
 */
export function ociPlace(url: string): OciPlace {
  const [host = '', ...path] = url.replace(/^oci:\/\//, '').split('/')
  const hub = ['docker.io', 'index.docker.io'].includes(host)
  return { host: hub ? 'registry-1.docker.io' : host, repository: hub && path.length === 1 ? `library/${path[0]}` : path.join('/') }
}

/** `oci://host/path:tag` or `…@sha256:…`, as an index of a Helm repository has them. Null means that it is none. */
export function ociReference(url: string): { url: string; reference: string } | null {
  const match =
    /^(oci:\/\/[A-Za-z0-9][-A-Za-z0-9.]*(?::[0-9]{1,5})?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+)(?::([\w][\w.-]{0,127})|@(sha256:[0-9a-f]{64}))$/.exec(
      url,
    )
  const [, place, tag, digest] = match ?? []
  const reference = tag ?? digest
  return place === undefined || reference === undefined ? null : { url: place, reference }
}

export const isDigest = (text: string): boolean => /^sha256:[0-9a-f]{64}$/.test(text)
/** One segment of a repository's path. */
export const isChartName = (text: string): boolean => text.length <= 250 && /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/.test(text)
export const isTag = (text: string): boolean => /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(text)

/** A tag holds no plus: helm writes an underscore for the one of build metadata. */
export const versionOfTag = (tag: string): string => tag.replaceAll('_', '+')
export const tagOfVersion = (version: string): string => version.replaceAll('+', '_')

/** How a registry wants to be asked; `realm` is where tokens are. */
export type Challenge = { scheme: 'bearer'; realm: string; service: string | null; scope: string | null } | { scheme: 'basic' }

/** Reads WWW-Authenticate; bearer before basic where both are offered. Null for an unknown scheme. */
export function readChallenge(header: string | null): Challenge | null {
  const text = header ?? ''
  const bearer = /(?:^|,\s*)bearer\s+(.*)$/i.exec(text)?.[1]
  if (bearer !== undefined) {
    const field = (name: string) => new RegExp(`(?:^|[,\\s])${name}="([^"]*)"`, 'i').exec(bearer)?.[1] ?? null
    const realm = field('realm')
    if (realm !== null) return { scheme: 'bearer', realm, service: field('service'), scope: field('scope') }
  }
  return /(?:^|,\s*)basic\b/i.test(text) ? { scheme: 'basic' } : null
}

/** `</v2/x/tags/list?last=b&n=2>; rel="next"` → where the next page is. */
export function nextPage(header: string | null): string | null {
  for (const part of (header ?? '').split(/,\s*(?=<)/)) {
    const [, target, rest = ''] = /^\s*<([^>]*)>(.*)$/.exec(part) ?? []
    if (target !== undefined && /;\s*rel="?next"?/i.test(rest)) return target
  }
  return null
}

export const HELM_CHART = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip'
export const HELM_PROVENANCE = 'application/vnd.cncf.helm.chart.provenance.v1.prov'
export const MANIFEST_TYPES = ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json']
export const INDEX_TYPES = ['application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json']
const ARCHIVE_TYPES = [
  'application/vnd.cncf.flux.content.v1.tar+gzip',
  'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.oci.image.layer.v1.tar+gzip',
  'application/vnd.docker.image.rootfs.diff.tar.gzip',
  'application/tar',
  'application/tar+gzip',
  'application/x-tar',
]

export interface LayerText {
  mediaType: string
  annotations?: Readonly<Record<string, string>> | undefined
}
/** The use of a layer's files: `nothing` is skipped, `unknown` is refused. */
export type LayerUse = { kind: 'chart' } | { kind: 'archive' } | { kind: 'file'; name: string } | { kind: 'nothing' } | { kind: 'unknown' }

/** A file that was pushed alone has its name as a title, whatever its type; one with `unpack` is a folder's archive. */
export function layerUse({ mediaType, annotations = {} }: LayerText): LayerUse {
  if (mediaType === HELM_CHART) return { kind: 'chart' }
  if (mediaType === HELM_PROVENANCE) return { kind: 'nothing' }
  const title = annotations['org.opencontainers.image.title']
  const isFolder = annotations['io.deis.oras.content.unpack'] === 'true'
  if (title !== undefined && !isFolder) return { kind: 'file', name: title }
  return isFolder || ARCHIVE_TYPES.includes(mediaType) ? { kind: 'archive' } : { kind: 'unknown' }
}
