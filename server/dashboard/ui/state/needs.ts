// Things that need a person, in words: each with its place, its age, what follows, and the action that resolves it.
import type { Attention } from '../../../../shared/model/attention.ts'
import { names } from '../format.ts'
import { text } from '../words/first.ts'
import type { ActionAsked } from './actions.ts'
import type { Refusal } from './api.ts'
import type { Mark } from './mark-of.ts'
import { pages } from './place.ts'
import { type ConfirmationView, useAttention } from './reads.ts'

export interface Need {
  id: string
  mark: Mark
  title: string
  said: string
  sinceMs: number | null
  href: string
  /** Label of the link. */
  label: string
  /** The action that can be done here and now. */
  action?: ActionAsked
}

export interface Needs {
  /** The count over the whole fleet; `items` has the first of them. */
  total: number
  items: Need[]
  isKnown: boolean
  /** Why nothing is known, or why what is known is old. */
  refusal: Refusal | null
  refresh(): void
}

export function useNeeds(): Needs {
  const { value, refusal, refresh } = useAttention(true)
  return { total: value?.total ?? 0, items: (value?.items ?? []).map(needOf), isKnown: value !== null, refusal, refresh }
}

export function needOf(one: Attention): Need {
  const { id, sinceMs } = one
  switch (one.kind) {
    case 'restore':
      return { id, sinceMs, mark: 'bad', ...text.needs.restore, href: pages.settings(), label: text.needs.review }
    case 'confirmation':
      return ofConfirmation(one.confirmation)
    case 'render': {
      const [problem] = one.problems
      const where = problem === undefined ? '' : `: ${problem.path === '' ? '' : `${problem.path}: `}${problem.message}`
      const said = `${sentence(`${one.message}${where}`)} ${text.needs.renderConsequence}`
      const title = text.needs.renderFailed(`${one.project}/${one.service}`)
      return { id, sinceMs, mark: 'bad', title, said, href: pages.service(one.project, one.service), label: text.needs.open }
    }
    case 'repository': {
      const { project, repository: name } = one
      const said = `${sentence(one.message)} ${text.needs.repositoryConsequence}`
      const title = text.needs.repositoryFailed(`${project}/${name}`)
      const action: ActionAsked = { kind: 'refresh', project, name }
      return { id, sinceMs, mark: 'bad', title, said, href: pages.repository(project, name), label: text.needs.open, action }
    }
    case 'contested': {
      const { project, service, objects, clusters } = one
      const said = text.needs.contestedSaid(objects, clusters.count, names(clusters.first, clusters.count))
      const [only] = clusters.first
      const href = clusters.count === 1 && only !== undefined ? pages.placement(only, project, service) : pages.service(project, service)
      return { id, sinceMs, mark: 'drift', title: text.needs.contested(`${project}/${service}`), said, href, label: text.needs.open }
    }
    case 'sync': {
      const { project, service, clusters } = one
      const said = text.needs.syncSaid(clusters.count, names(clusters.first, clusters.count))
      const action: ActionAsked = { kind: 'sync', service: { project, name: service } }
      const title = text.needs.sync(`${project}/${service}`)
      return { id, sinceMs, mark: 'changing', title, said, href: pages.service(project, service), label: text.needs.open, action }
    }
  }
}

export function ofConfirmation(question: ConfirmationView): Need {
  const { id, kind, project, service, cluster, clusters, names: asked, createdMs } = question
  const where = clusters !== undefined ? text.needs.inManyClusters(clusters.count) : cluster === null ? '' : text.needs.inCluster(cluster)
  return {
    ...{ id, mark: 'bad', title: text.needs.kinds[kind] ?? text.needs.otherKind },
    said: `${[`${project}/${service}`, where].filter(Boolean).join(' ')}: ${names(asked)}. ${sentence(question.why)}`,
    ...{ sinceMs: createdMs, href: pages.confirmation(id), label: text.needs.review },
  }
}

export function sentence(words: string): string {
  if (words === '') return ''
  const begun = words.charAt(0).toUpperCase() + words.slice(1)
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}
