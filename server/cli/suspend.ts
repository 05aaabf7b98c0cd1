// suspend and resume: services stay unchanged, in all clusters or in some, until a person resumes them.
import {
  resumeFlags,
  type SuspendAnswer,
  type SuspendedScope,
  type SuspensionView,
  scopeText,
  suspendAnswerSchema,
} from '../../shared/model/suspension.ts'
import { ageText, type Column, plainText } from './columns.ts'
import type { Context, Output } from './context.ts'
import { UsageError } from './io.ts'
import { parseTarget } from './kinds.ts'
import { documentText } from './printing/documents.ts'

export interface SuspendOptions {
  project: string
  isProjectGiven: boolean
  /** With a selector. */
  allProjects?: true | undefined
  cluster: string[]
  selector?: string | undefined
  all?: true | undefined
  reason?: string | undefined
  dryRun?: true | undefined
  output?: Output
}

export async function suspend(context: Context, targets: readonly string[], options: SuspendOptions): Promise<void> {
  if (options.reason === undefined || options.reason.trim() === '')
    throw new UsageError('--reason is missing: everyone who reads the service sees why it is suspended')
  const answer = await send(context, '/suspend', targets, options)
  print(context, answer, options.output)
}

export async function resume(context: Context, targets: readonly string[], options: SuspendOptions): Promise<void> {
  const answer = await send(context, '/resume', targets, options)
  print(context, answer, options.output)
  if (answer.remaining.length > 0)
    context.io.stderr.write(
      `still suspended:\n${answer.remaining.map((one) => `  ${plainText(`${scopeText(scopeOf(one))}, by ${one.by}: ${one.reason}`)}\n    skerry resume ${resumeFlags(scopeOf(one))}\n`).join('')}`,
    )
}

async function send(context: Context, address: string, targets: readonly string[], options: SuspendOptions): Promise<SuspendAnswer> {
  const { cluster: clusters, selector, all, dryRun, reason, project, isProjectGiven, allProjects } = options
  const services = targets.map(serviceName)
  const ofServices = services.length > 0 || selector !== undefined
  if (all === true ? ofServices : !ofServices && clusters.length === 0)
    throw new UsageError(all === true ? '--all cannot be combined with names or -l' : 'expected names, -l LABELS, --cluster NAME or --all')
  if (isProjectGiven && !ofServices) throw new UsageError('-p needs names or -l: --all and --cluster mean the services of all projects')
  if (allProjects === true && (services.length > 0 || selector === undefined))
    throw new UsageError('-A needs -l and cannot be combined with names')
  return context.client().send('POST', address, suspendAnswerSchema, {
    ...(ofServices && allProjects !== true ? { project } : {}),
    ...(services.length === 0 ? {} : { services }),
    ...(selector === undefined ? {} : { labelSelector: selector }),
    ...(clusters.length === 0 ? {} : { clusters }),
    ...(all === true ? { all } : {}),
    ...(dryRun === true ? { dryRun } : {}),
    ...(reason === undefined ? {} : { reason }),
  })
}

function serviceName(target: string): string {
  const name = target.includes('/') ? parseTarget(target, undefined, ['services']).name : target
  if (name === undefined || name === '') throw new UsageError('name missing: `skerry get services` lists the names')
  return name
}

const scopeOf = ({ project, service, cluster }: Pick<SuspensionView, 'project' | 'service' | 'cluster'>): SuspendedScope => ({
  service: project === null || service === null ? null : { project, service },
  cluster,
})

function print({ io }: Context, answer: SuspendAnswer, output: Output): void {
  const document = documentText(answer, output)
  if (document !== null) return void io.stdout.write(document)
  const note = answer.dryRun ? ' (dry run)' : ''
  for (const result of answer.results) {
    const scope = plainText(scopeText(scopeOf(result)))
    io.stdout.write(output === 'name' ? `${scope}\n` : `${scope} ${result.action}${note}\n`)
  }
}

export const suspensionColumns = (nowMs: number): Column<SuspensionView>[] => [
  { title: 'PROJECT', value: ({ project }) => project ?? '*' },
  { title: 'SERVICE', value: ({ service }) => service ?? '*' },
  { title: 'CLUSTER', value: ({ cluster }) => cluster ?? '*' },
  { title: 'BY', value: ({ by }) => by },
  { title: 'AGE', value: ({ sinceMs }) => ageText(sinceMs, nowMs) },
  { title: 'REASON', value: ({ reason }) => reason },
]

/** For `describe`: who suspended it, when and why, and how to resume it. */
export const suspensionFacts = (suspensions: readonly SuspensionView[], nowMs: number): Array<[string, string]> =>
  suspensions.map((one) => [
    'Suspended',
    `${scopeText(scopeOf(one))}, by ${one.by} ${ageText(one.sinceMs, nowMs)} ago: ${one.reason}; skerry resume ${resumeFlags(scopeOf(one))}`,
  ])
