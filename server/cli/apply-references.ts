// Names in applied resources that do not exist: they may be created later, so that is no error. A typing error would
// otherwise appear only at the first render.

import { type Applicable, DEFAULT_PROJECT, sourcesOf } from '../../shared/model/resources.ts'
import { configViewSchema, repositoryViewSchema, serviceViewSchema } from '../../shared/model/views.ts'
import { nearest } from '../../shared/runtime/edit-distance.ts'
import type { Client } from './client.ts'

type Kind = 'Service' | 'Repository' | 'Config'

interface Reference {
  /** For messages: `service/shop: spec.source`. */
  place: string
  kind: Kind
  project: string
  name: string
}

/** One warning for each name that is neither on the server nor among `resources`. Of kinds that this token may not list
 *  nothing is said: what was applied is applied. */
export async function referenceWarnings(client: Client, resources: readonly Applicable[]): Promise<string[]> {
  const named = resources.flatMap((resource) => referencesOf(resource).map((reference) => ({ ...reference, by: resource })))
  const known = new Map<string, readonly string[] | null>()
  for (const { kind, project } of named) {
    const key = `${kind} ${project}`
    if (known.has(key)) continue
    const there = await namesOf(client, kind, project).catch(() => null)
    const coming = resources.filter((one) => one.kind === kind && projectOf(one) === project)
    known.set(key, there === null ? null : [...there, ...coming.map(({ metadata }) => metadata.name)])
  }
  return named.flatMap(({ place, kind, project, name, by }) => {
    const names = known.get(`${kind} ${project}`) ?? null
    if (names === null || names.includes(name)) return []
    // A service cannot depend on itself.
    const near = nearest(
      name,
      names.filter((other) => kind !== by.kind || project !== projectOf(by) || other !== by.metadata.name),
    )
    const meant = near === null ? '' : `; did you mean "${near}"?`
    return [`${place} names the ${kind} ${name} of project ${project}, which does not exist${meant}`]
  })
}

const projectOf = ({ metadata }: Applicable): string => ('project' in metadata ? metadata.project : undefined) ?? DEFAULT_PROJECT

function referencesOf(resource: Applicable): Reference[] {
  const project = projectOf(resource)
  const at = `${resource.kind.toLowerCase()}/${resource.metadata.name}: spec`
  if (resource.kind === 'Cluster')
    return (resource.spec.overrides ?? []).map(({ service, project: of = DEFAULT_PROJECT }, index) => {
      return { place: `${at}.overrides[${index}]`, kind: 'Service', project: of, name: service }
    })
  if (resource.kind !== 'Service') return []
  const { spec } = resource
  const sources = sourcesOf(spec)
  const renders = [spec.render, ...sources.map(({ render }) => render)]
  return [
    ...sources.map(({ repository }, index): Reference => {
      return {
        place: spec.sources === undefined ? `${at}.source` : `${at}.sources[${index}]`,
        kind: 'Repository',
        project,
        name: repository,
      }
    }),
    ...(spec.configFrom ?? []).flatMap(({ name, optional }, index): Reference[] =>
      optional === true ? [] : [{ place: `${at}.configFrom[${index}]`, kind: 'Config', project, name }],
    ),
    ...(spec.dependsOn ?? []).map(({ name, project: of = project }, index): Reference => {
      return { place: `${at}.dependsOn[${index}]`, kind: 'Service', project: of, name }
    }),
    ...renders.flatMap((render) =>
      (render?.helm?.valuesFrom ?? []).flatMap(({ name, optional }, index): Reference[] =>
        optional === true ? [] : [{ place: `${at}: helm.valuesFrom[${index}]`, kind: 'Config', project, name }],
      ),
    ),
  ]
}

async function namesOf(client: Client, kind: Kind, project: string): Promise<string[]> {
  const named = (views: readonly { metadata: { name: string } }[]) => views.map(({ metadata }) => metadata.name)
  switch (kind) {
    case 'Service':
      return named(await client.list('/services', serviceViewSchema, { project }))
    case 'Repository':
      return named(await client.list('/repositories', repositoryViewSchema, { project }))
    case 'Config':
      return named(await client.list('/configs', configViewSchema, { project }))
  }
}
