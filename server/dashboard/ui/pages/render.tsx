// The render of a service for a chosen cluster: the objects as they would be sent, or the errors with file and line,
// and the number of variants that its clusters get.

import { useMemo } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import type { RenderView, VariantsView } from '../../../../shared/model/render-views.ts'
import { names, number, shortCommit } from '../format.ts'
import { EffectiveValues } from '../parts/effective-values.tsx'
import { Head } from '../parts/head.tsx'
import { Yaml } from '../parts/live-yaml.tsx'
import { ProblemList } from '../parts/problems.tsx'
import { Denied, Empty, Shown, Waiting } from '../parts/states.tsx'
import { useFilters } from '../state/address.ts'
import { call } from '../state/api.ts'
import { pages } from '../state/place.ts'
import { useResource } from '../state/resource.ts'
import { useMayRender } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { more } from '../words/later.ts'
import { yamlOf } from '../yaml.ts'

const words = more.render

export function RenderPage() {
  const { params } = useRoute()
  const { project = '', service: name = '' } = params
  const may = useMayRender(project, name)
  return (
    <>
      <Head
        title={words.title(name)}
        crumb={
          <a href={pages.service(project, name)}>
            {text.nav.services} / {project}/{name}
          </a>
        }
      />
      {may === null ? <Waiting rows={8} /> : may.allowed ? <Rendered project={project} name={name} /> : <Denied detail={may.detail} />}
    </>
  )
}

function Rendered({ project, name }: { project: string; name: string }) {
  const { filters, set } = useFilters()
  const cluster = filters['cluster'] ?? ''
  const params = { project, name }
  const isNew = ({ topic, name: of }: { topic: string; name: string | null }) =>
    (topic === 'render' || topic === 'resource') && (of === null || of.includes(name))
  const view = useResource(
    `rendered ${project}/${name} ${cluster}`,
    (signal) => call('GET /projects/:project/services/:name/render', { params, query: { cluster, explain: true }, signal }),
    isNew,
  )
  const variants = useResource(
    `variants ${project}/${name}`,
    (signal) => call('GET /projects/:project/services/:name/variants', { params, signal }),
    isNew,
    true,
  )
  return (
    <div class="detail">
      <div class="stack wide">
        <form
          class="filters"
          onSubmit={(event) => {
            event.preventDefault()
            const asked = new FormData(event.currentTarget).get('cluster')
            set({ cluster: typeof asked === 'string' ? asked.trim() : '', object: undefined })
          }}
        >
          <input
            type="search"
            name="cluster"
            aria-label={words.cluster}
            placeholder={words.cluster}
            defaultValue={cluster}
            list="render-clusters"
          />
          <datalist id="render-clusters">
            {(variants.value?.variants ?? [])
              .slice(0, 20)
              .flatMap((one) => one.clusters.slice(0, 10).map((of) => <option key={of} value={of} />))}
          </datalist>
          <button type="submit">{words.show}</button>
          <span class="told">{words.hint}</span>
        </form>
        <Shown of={view} rows={8}>
          {(of) => <Result view={of} chosen={filters['object'] ?? ''} onChoose={(object) => set({ object })} />}
        </Shown>
      </div>
      <section>
        <div class="section-head">
          <h2>{words.variants}</h2>
        </div>
        <div class="panel">
          <Shown of={variants} rows={3}>
            {(of) => <Variants view={of} onChoose={(one) => set({ cluster: one, object: undefined })} />}
          </Shown>
        </div>
      </section>
    </div>
  )
}

interface Meta {
  kind?: string
  metadata?: { name?: string; namespace?: string }
}
const nameOf = (object: Record<string, unknown>): string => {
  const { kind = '', metadata = {} } = object as Meta
  return `${kind} ${[metadata.namespace, metadata.name].filter(Boolean).join('/')}`
}

function Result({ view, chosen, onChoose }: { view: RenderView; chosen: string; onChoose(object: string): void }) {
  const { objects, error, problems, warnings, version, tools, note, digest, cluster } = view
  const one = objects.find((object) => nameOf(object) === chosen) ?? null
  const yaml = useMemo(() => (one === null ? objects.map((object) => yamlOf(object)).join('---\n') : yamlOf(one)), [objects, one])
  return (
    <div class="stack wide">
      <div class="panel padded stack">
        <p>
          {error === null ? words.renders(objects.length) : error}
          <span class="muted">
            {' '}
            {cluster === null ? words.forNone : words.forCluster(cluster)}
            {version !== null && ` · ${shortCommit(version)}`}
            {digest !== null && ` · ${digest.slice(0, 8)}`}
            {Object.entries(tools).map(([tool, of]) => ` · ${tool} ${of}`)}
          </span>
        </p>
        {note !== null && <p class="muted">{note}</p>}
      </div>
      {problems.length > 0 && (
        <div class="panel padded-top">
          <ProblemList title={text.services.problems} problems={problems} />
        </div>
      )}
      {warnings.length > 0 && (
        <div class="panel padded-top">
          <ProblemList title={words.warnings} problems={warnings} tone="warn" />
        </div>
      )}
      {objects.length > 0 && (
        <>
          <div class="chips">
            <button type="button" aria-pressed={one === null} onClick={() => onChoose('')}>
              {words.all(number(objects.length))}
            </button>
            {objects.map((object) => (
              <button
                key={nameOf(object)}
                type="button"
                class="mono"
                aria-pressed={nameOf(object) === chosen}
                onClick={() => onChoose(nameOf(object))}
              >
                {nameOf(object)}
              </button>
            ))}
          </div>
          <Yaml content={yaml} label={one === null ? words.title(view.service) : nameOf(one)} />
        </>
      )}
      {objects.length === 0 && error === null && <Empty title={words.nothing} />}
      <EffectiveValues values={view.values ?? []} cluster={cluster} />
    </div>
  )
}

function Variants({ view: { variants, failing }, onChoose }: { view: VariantsView; onChoose(cluster: string): void }) {
  if (variants.length + failing.length === 0) return <Empty title={words.nowhere} />
  return (
    <ul class="picks">
      {failing.map(({ error, clusters }) => (
        <li key={error}>
          <button type="button" class="quiet tall" onClick={() => onChoose(clusters[0] ?? '')}>
            <b class="badly">{text.n.clusters(clusters.length)}</b>
            <span class="small muted">{error}</span>
          </button>
        </li>
      ))}
      {variants.map(({ digest, objects, clusters }) => (
        <li key={digest}>
          <button type="button" class="quiet tall" onClick={() => onChoose(clusters[0] ?? '')}>
            <b>{words.variant(clusters.length, objects)}</b>
            <span class="small muted">
              <span class="mono">{digest.slice(0, 8)}</span> {names(clusters)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  )
}
