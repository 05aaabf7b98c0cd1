// apply: resources from files to the server, all or none.
import { type ApplyAnswer, applyAnswerSchema } from '../../shared/model/apply-views.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import { referenceWarnings } from './apply-references.ts'
import { countText, plainText } from './columns.ts'
import type { Context, Output } from './context.ts'
import { readAll, UsageError } from './io.ts'
import { documentText } from './printing/documents.ts'
import { violationText } from './project-facts.ts'
import { dataNames, keptText, removalText } from './removal-text.ts'
import { parseResources, type ReadDocument, type ResourceFile, readResourceFiles } from './resource-files.ts'

type Result = ApplyAnswer['results'][number]

export async function apply(
  context: Context,
  options: {
    filename: string[]
    recursive?: true | undefined
    dryRun?: true | undefined
    confirmData?: readonly string[] | undefined
    output?: Output
  },
): Promise<void> {
  if (options.filename.length === 0) throw new UsageError('nothing to apply: give -f FILE, -f DIR or -f -')
  const { io } = context
  const files = await readResourceFiles(options.filename, options.recursive === true, () => readAll(io))
  const parsed = parseResources(files)
  const { read } = parsed
  if (parsed.problems.length > 0) throw await everythingWrong(context, parsed, files)
  if (read.length === 0) throw new UsageError(`there is no resource in ${options.filename.join(', ')}`)
  const { confirmData = [] } = options
  // A server that knows no names of data gets none.
  const names = confirmData.length === 0 ? {} : { confirmData }
  const body = { resources: read.map(({ document }) => document), dryRun: options.dryRun === true, ...names }
  const answer = await context
    .client()
    .send('POST', '/apply?effects=true', applyAnswerSchema, body)
    .catch((error: unknown) => {
      throw placed(error, read)
    })
  const warnings = await referenceWarnings(
    context.client(),
    read.map(({ resource }) => resource),
  )
  const told = (answer.warnings ?? []).map(({ resource, message }) => `${resource}: ${message}`)
  for (const warning of [...told, ...warnings]) io.stderr.write(`warning: ${plainText(warning)}\n`)
  const document = documentText(answer, options.output)
  if (document !== null) {
    io.stdout.write(document)
    return
  }
  const note = answer.dryRun ? ' (dry run)' : ''
  for (const result of answer.results) {
    io.stdout.write(options.output === 'name' ? `${resultName(result)}\n` : `${resultName(result)} ${result.action}${note}\n`)
    if (options.output !== 'name')
      for (const line of [
        ...movedLines(result, answer),
        ...changedLines(result, answer),
        ...effectLines(result, answer),
        ...violationLines(result, answer),
      ])
        io.stdout.write(`  ${plainText(line)}\n`)
  }
  if (options.output !== 'name') for (const line of leftLines(answer)) io.stderr.write(`note: ${line}\n`)
  const removals = (answer.moves ?? []).flatMap((moved) => moved.removals ?? [])
  const kept = dataNames(removals)
  if (options.output !== 'name' && !answer.dryRun) io.stderr.write(keptText(kept, confirmData, null))
}

/**
 * Problems of the files themselves, and those that only the server sees in documents whose fields are right: one
 * answer, in the order of the files. Documents with problems are sent too, so that the server does not report what they
 * replace; its own problems with them are dropped, since they are listed already.
 */
async function everythingWrong(
  context: Context,
  { read, wrong, problems: own }: ReturnType<typeof parseResources>,
  files: readonly ResourceFile[],
): Promise<AppError> {
  const seen = await seenByServer(context, read, wrong)
  const problems = inFileOrder([...own, ...(seen ?? [])], files)
  const more = seen === null ? '; the server did not answer, so there may be more' : ''
  return new AppError('invalid_resource', { detail: `${countText(problems.length, 'problem')}; nothing was changed${more}`, problems })
}

/** Null if it did not say. */
async function seenByServer(
  context: Context,
  read: readonly ReadDocument[],
  wrong: readonly ReadDocument[],
): Promise<readonly Problem[] | null> {
  if (read.length === 0) return []
  const body = { resources: [...read, ...wrong].map(({ document }) => document), dryRun: true }
  try {
    await context.client().send('POST', '/apply', applyAnswerSchema, body)
    return [] // a server that takes what this program does not know
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'invalid_resource') return null
    return (error.data.problems ?? []).flatMap((problem) => {
      const index = indexOf(problem)
      return index === null || index >= read.length ? [] : [placedAt(problem, read)]
    })
  }
}

/** Those of one line stay as they come. */
function inFileOrder(problems: readonly Problem[], files: readonly ResourceFile[]): Problem[] {
  const keyOf = ({ path }: Problem): [file: number, line: number] => {
    const file = files.findIndex(({ name }) => path.startsWith(`${name}:`))
    return [file, Number.parseInt(path.slice((files[file]?.name.length ?? 0) + 1), 10)]
  }
  const keyed = problems.map((problem) => ({ problem, key: keyOf(problem) }))
  return keyed.sort(({ key: a }, { key: b }) => a[0] - b[0] || a[1] - b[1]).map(({ problem }) => problem)
}

/** Lines about the services that a relabelled cluster, or a service with other targets, loses and gains. */
function movedLines({ kind, project, name }: Result, { moves = [], dryRun }: ApplyAnswer): string[] {
  const moved = moves.find((one) => one.kind === kind && one.project === project && one.name === name)
  if (moved === undefined) return []
  const { leaves, comes, waits } = moved
  const isCluster = kind === 'Cluster'
  const of = isCluster ? 'service' : 'cluster'
  const names = ({ count, first }: typeof comes): string => {
    const shown = first.map((place) => (isCluster ? `${place.project}/${place.service}` : place.cluster)).join(', ')
    return `${countText(count, of)}: ${shown}${count > first.length ? ` and ${count - first.length} more` : ''}`
  }
  const when = dryRun ? 'would ' : ''
  const effects = removalText(moved.removals ?? [], dryRun ? 'would be' : 'will be').trimEnd()
  return [
    ...(leaves.count === 0 ? [] : [`${when}${isCluster ? (dryRun ? 'lose' : 'loses') : dryRun ? 'leave' : 'leaves'} ${names(leaves)}`]),
    ...(effects === '' ? [] : effects.split('\n')),
    ...(comes.count === 0 ? [] : [`${when}${isCluster ? (dryRun ? 'get' : 'gets') : dryRun ? 'come to' : 'comes to'} ${names(comes)}`]),
    ...waits.map(({ project: of, service, why }) => `${of}/${service} is removed after confirmation (\`skerry confirm\`): ${why}`),
  ]
}

/** PJ8: what is stored and a Project does not allow any more. */
const violationLines = ({ kind, name }: Result, { violations = [] }: ApplyAnswer): string[] =>
  kind !== 'Project' ? [] : violations.flatMap((one) => (one.resource.startsWith(`${name}/`) ? [`not allowed: ${violationText(one)}`] : []))

/**
 * Lines about changes where the service stays: those of a relabelled cluster, or of a service with another namespace.
 */
const changedLines = ({ kind, project, name }: Result, { changes = [], dryRun }: ApplyAnswer): string[] =>
  changes
    .filter((one) => one.kind === kind && one.name === name && (kind === 'Cluster' || one.project === project))
    .map(({ project: of, service, what, detail, clusters: { count, first } }) => {
      const [lose, get, move] = dryRun ? ['would lose', 'would get', 'would move'] : ['loses', 'gets', 'moves']
      if (what !== 'namespace') return `${of}/${service} ${what === 'override_lost' ? lose : get} ${detail}`
      const more = count > first.length ? ` and ${count - first.length} more` : ''
      return `${move} ${detail} in ${countText(count, 'cluster')}: ${first.join(', ')}${more}; its objects are created there, and those of before are pruned`
    })

/** Objects of a service in clusters that keep it; data comes first. */
const effectLines = ({ kind, project, name }: Result, { effects = [], dryRun }: ApplyAnswer): string[] => {
  const will = dryRun ? 'would' : 'will'
  return effects
    .filter((one) => one.kind === kind && one.name === name && (kind === 'Cluster' || one.project === project))
    .flatMap(({ project: of, service, clusters: { count, first }, objects, error }) => {
      const more = count > first.length ? ` and ${count - first.length} more` : ''
      const where = `${of}/${service} in ${first.join(', ')}${more}`
      if (error !== undefined) return [`${where}: ${will} not render: ${error}`]
      if (objects === undefined) return []
      const line = (what: string, { count: all, first: names }: { count: number; first: readonly string[] }) =>
        all === 0
          ? []
          : [
              `  ${countText(all, 'object')} ${will} be ${what}: ${names.join(', ')}${all > names.length ? ` and ${all - names.length} more` : ''}`,
            ]
      const { recreated, data } = objects
      return [
        `${where}:`,
        ...(data.count === 0
          ? []
          : [
              `  ${countText(data.count, 'object')} with data ${will} be given up: ${data.first.join(', ')} (deleted only when confirmed by name)`,
            ]),
        ...line('deleted', objects.deleted),
        ...line('recreated', { count: recreated.count, first: recreated.first.map(({ from, to }) => `${from} as ${to}`) }),
        ...line('created', objects.created),
        ...line('changed', objects.changed),
        ...line('taken over', ownedNames(objects.takenOver)),
        ...managedLines(objects.takesOver),
        ...objects.replicas.map(({ name: object, from, to }) => `  ${object}: ${replicas(from)} to ${replicas(to)}`),
      ]
    })
}

type Owned = NonNullable<NonNullable<ApplyAnswer['effects']>[number]['objects']>['takenOver']

const ownedNames = (owned: Owned) => ({ count: owned?.count ?? 0, first: (owned?.first ?? []).map(({ name, by }) => `${name} by ${by}`) })

/** Two services that name an object: the first one keeps it, so the second one reports a conflict until then. */
const managedLines = (owned: Owned): string[] => {
  const { count, first } = ownedNames(owned)
  if (count === 0) return []
  const more = count > first.length ? ` and ${count - first.length} more` : ''
  const until = 'taken over when that service no longer names them'
  return [`  ${countText(count, 'object')} ${count === 1 ? 'is' : 'are'} managed by another service, ${until}: ${first.join(', ')}${more}`]
}

/** Parts of the answer that are cut. */
function leftLines({ effectsLeft = 0, changesLeft = 0, moves = [], dryRun }: ApplyAnswer): string[] {
  const waitsLeft = moves.reduce((sum, move) => sum + (move.waitsLeft ?? 0), 0)
  const hint = dryRun ? 'apply fewer at once to see them' : '`skerry apply --dry-run` with fewer resources shows them'
  return [
    ...(effectsLeft === 0
      ? []
      : [`effects on objects are not shown, or not for all clusters, of ${countText(effectsLeft, 'resource')}; ${hint}`]),
    ...(changesLeft === 0 ? [] : [`${countText(changesLeft, 'more change')} of overrides ${changesLeft === 1 ? 'is' : 'are'} not shown`]),
    ...(waitsLeft === 0 ? [] : [`more of the removals may wait for confirmation; \`skerry confirm\` lists those that do`]),
  ]
}

const replicas = (count: number | null): string => (count === null ? 'no spec.replicas' : countText(count, 'replica'))

const resultName = ({ kind, project, name }: Result): string =>
  `${kind.toLowerCase()}/${name}${project === '' || project === 'default' ? '' : ` (project ${project})`}`

/** The server counts resources; people count lines. */
function placed(error: unknown, documents: readonly ReadDocument[]): unknown {
  if (!(error instanceof AppError) || error.data.problems === undefined) return error
  const problems = error.data.problems.map((problem) => placedAt(problem, documents))
  return new AppError(error.code, { ...error.data, problems }, { cause: error })
}

const AT_RESOURCE = /^resources\[(\d+)\]\.?(.*)$/

/** The index of the document. Null if the problem is of none in particular. */
function indexOf({ path }: Problem): number | null {
  const index = AT_RESOURCE.exec(path)?.[1]
  return index === undefined ? null : Number(index)
}

function placedAt(problem: Problem, documents: readonly ReadDocument[]): Problem {
  const document = documents[indexOf(problem) ?? -1]
  const path = AT_RESOURCE.exec(problem.path)?.[2] ?? ''
  if (document === undefined) return problem
  return { path: document.placeOf(path), message: path === '' ? problem.message : `${path}: ${problem.message}` }
}
