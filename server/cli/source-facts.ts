// The facts about sources for `describe`: the sources of a service, and a repository with the settings for its forge.
import type { RenderSpec } from '../../shared/model/render.ts'
import { placeOf, placeTexts, type ServiceSpec, sourcesOf, sourceText } from '../../shared/model/resources.ts'
import type { RepositoryView, ServiceView } from '../../shared/model/views.ts'
import { ageText, labelsText, plainText, withAuthor } from './columns.ts'
import type { Fact } from './service-facts.ts'

/** The renderers that are named, or were found. */
export const rendererText = ({ spec }: Pick<ServiceView, 'spec'>): string => {
  const named = sourcesOf(spec).flatMap(({ render, filesOnly }) => (filesOnly === true ? [] : [(render ?? spec.render)?.type ?? 'auto']))
  return [...new Set(named)].join(', ')
}

const toolsText = (tools: Readonly<Record<string, string>>): string =>
  Object.entries(tools)
    .map(([tool, version]) => `${tool} ${version}`)
    .sort()
    .join(', ')

export function sourceFacts({ metadata, spec, status }: ServiceView): Fact[] {
  const { variants } = status
  return [
    ...sourcesOf(spec).map((source, index): Fact => {
      const named = source.name === undefined ? '' : ` as $${source.name}`
      const only = source.filesOnly === true ? ', files only' : ''
      const read = index === 0 ? status.commit : source.chart === undefined ? (status.revisions[source.repository] ?? null) : null
      const at = read === null ? '' : ` at ${read}`
      return ['Source', `${sourceText(source)}${named}${at}${only}`]
    }),
    ...remoteBaseFacts(spec, status.revisions),
    ['Renderer', rendererText({ spec })],
    ['Tools', toolsText(status.tools)],
    ...renderFacts(spec.render),
    ['Variables', variablesText(spec)],
    ['Overrides', spec.overrides === undefined ? null : `${spec.overrides.length}, for some of its clusters`],
    ['Renders', variants <= 1 ? null : `${variants} different; \`skerry render ${metadata.name} -p ${metadata.project} --all-clusters\` shows the clusters of each`], // biome-ignore format: one sentence
  ]
}

/** KU15. Revisions that are of no Repository. */
function remoteBaseFacts(spec: ServiceSpec, revisions: Readonly<Record<string, string>>): Fact[] {
  const repositories = new Set(sourcesOf(spec).map(({ repository }) => repository))
  return Object.entries(revisions)
    .filter(([name]) => !repositories.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, revision]): Fact => ['Remote base', `${plainText(name)} at ${revision}`])
}

function variablesText({ config = {}, configFrom = [] }: ServiceSpec): string | null {
  const from = configFrom.map(({ name, optional }) => `config/${name}${optional === true ? ' (optional)' : ''}`)
  const own = Object.keys(config)
  return [...from, ...(own.length === 0 ? [] : [`own: ${own.join(', ')}`])].join('; ') || null
}

function renderFacts(render: RenderSpec | undefined): Fact[] {
  const { helm, patches = [], commonLabels = {}, commonAnnotations = {}, templated } = render ?? {}
  const from = (helm?.valuesFrom ?? []).map(({ name, key }) => `config/${name}[${key}]`)
  return [
    ['Templated', templated === true ? 'all manifests and values files are Liquid templates' : null],
    ['Values files', helm?.valuesFiles?.join(', ')],
    ['Values from', from.join(', ')],
    ['Patches', patches.length === 0 ? null : `${patches.length}, after the renderer`],
    ['Common labels', labelsText(commonLabels)],
    ['Common annotations', labelsText(commonAnnotations)],
  ]
}

/** In a form that is not overlooked. */
export const warningsText = ({ warnings }: ServiceView['status']): string =>
  warnings.length === 0
    ? ''
    : `WARNINGS of the last render (${warnings.length}):\n${warnings.map(({ path, message }) => `  ${plainText(path)}: ${plainText(message)}\n`).join('')}`

const signersText = (keys: number): string => `only commits signed by ${keys === 1 ? 'its key' : `one of ${keys} keys`}`

export function repositoryPlaceFacts({ spec, status }: RepositoryView, nowMs: number): Fact[] {
  const place = placeOf(spec)
  const { url, ref } = placeTexts(spec)
  const secretRef = place.spec.auth?.secretRef
  const verified = place.kind === 'git' && place.spec.verify !== undefined ? signersText(place.spec.verify.keys.length) : null
  const options = place.kind === 'git' ? [place.spec.submodules === true ? 'submodules' : '', place.spec.submoduleCredentials === true ? 'credential for submodules' : '', place.spec.client === undefined ? '' : `client ${place.spec.client}`] : [] // biome-ignore format: two of a kind
  const kept =
    status.ready || status.commit === null || status.fetchedMs === null
      ? null
      : `the version of ${ageText(status.fetchedMs, nowMs)} ago stays in use`
  return [
    ['Kind', place.kind],
    ['URL', url],
    [place.kind === 'helm' ? 'Content' : 'semver' in place.spec && place.spec.semver !== undefined ? 'Semver' : 'Ref', ref],
    ['Options', options.filter((option) => option !== '').join(', ')],
    ['Verified', verified],
    ['Auth', secretRef === undefined ? null : `config/${secretRef}`],
    ['Poll', spec.poll],
    [
      place.kind === 'git' ? 'Commit' : place.kind === 'helm' ? 'Index' : 'Digest',
      status.commit === null ? null : withAuthor(status.commit, status),
    ],
    ['Tag', status.tag],
    ['Last content', kept],
    ['Last read', readText(status, nowMs)],
  ]
}

/** When it was last read, whether that failed, and when it is read next. Null means that the server does not say. */
export function readText({ ready, lastReadMs, nextReadMs }: RepositoryView['status'], nowMs: number): string | null {
  if (nextReadMs === null) return null
  const last = lastReadMs === null ? 'not since the server started' : `${ageText(lastReadMs, nowMs)} ago${ready ? '' : ', failed'}`
  return `${last}; next ${nextReadMs <= nowMs ? 'now' : `in about ${ageText(nowMs, nextReadMs)}`}`
}

/** WH2: what to enter where. */
export const WEBHOOK_HELP = `Enter them in the forge or registry, for pushes (and pushes of tags):
  GitHub:          Payload URL, content type application/json, Secret
  GitLab:          URL, Secret token
  Gitea, Forgejo:  Target URL, POST, application/json, Secret
  Bitbucket:       URL, Secret
  Registries:      URL, and the header "Authorization: Bearer SECRET" (Harbor, distribution)
  Others:          POST, and the header "X-Skerry-Signature: sha256=HEX", the HMAC-SHA-256 of the body under the secret
`
