// Collects pending confirmations, failed renders and unreadable repositories, each with its place, age and effect.
import { names } from '../format.ts'
import { text } from '../words.ts'
import type { Refusal } from './api.ts'
import type { Mark } from './mark-of.ts'
import { pages } from './place.ts'
import { type ConfirmationView, type RepositoryView, type ServiceView, useConfirmations, useRepositories, useServices } from './reads.ts'

export interface Need {
  id: string
  mark: Mark
  title: string
  said: string
  sinceMs: number | null
  href: string
  action: string
}

export interface Needs {
  total: number
  items: Need[]
  isKnown: boolean
  /** Why nothing is known. */
  refusal: Refusal | null
}

export function useNeeds(): Needs {
  const [confirmations, services, repositories] = [useConfirmations(true), useServices(true), useRepositories(true)]
  const items = [
    ...(confirmations.value?.items ?? []).filter(({ confirmedMs }) => confirmedMs === null).map(ofConfirmation),
    ...(services.value?.items ?? []).filter(({ status }) => status.reason === 'RenderFailed').map(ofService),
    ...(repositories.value?.items ?? []).filter(({ status }) => !status.ready && status.reason !== 'NotFetched').map(ofRepository),
  ]
  return {
    total: items.length,
    items,
    isKnown: confirmations.value !== null && services.value !== null,
    refusal: confirmations.refusal ?? services.refusal,
  }
}

export function ofConfirmation(question: ConfirmationView): Need {
  const { id, kind, project, service, cluster, clusters, names: asked, createdMs } = question
  const where = clusters !== undefined ? `in ${clusters.count} clusters` : cluster === null ? '' : `in ${cluster}`
  return {
    id,
    mark: 'bad',
    title: text.needs.kinds[kind] ?? text.needs.otherKind,
    said: `${project}/${service} ${where}: ${names(asked)}. ${sentence(question.why)}`,
    sinceMs: createdMs,
    href: pages.confirmation(id),
    action: text.needs.review,
  }
}

function ofService({ metadata: { project = '', name }, status }: ServiceView): Need {
  return {
    id: `render ${project}/${name}`,
    mark: 'bad',
    title: text.needs.renderFailed(name),
    said: `${sentence(status.problems[0]?.message ?? status.message)} ${text.needs.renderConsequence}`,
    sinceMs: status.sinceMs,
    href: pages.service(project, name),
    action: text.needs.review,
  }
}

function ofRepository({ metadata: { project = '', name }, status }: RepositoryView): Need {
  return {
    id: `repository ${project}/${name}`,
    mark: 'bad',
    title: text.needs.repositoryFailed(name),
    said: `${sentence(status.message)} ${text.needs.repositoryConsequence}`,
    sinceMs: status.sinceMs,
    href: pages.repository(project, name),
    action: text.needs.review,
  }
}

export function sentence(words: string): string {
  if (words === '') return ''
  const begun = words.charAt(0).toUpperCase() + words.slice(1)
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}
