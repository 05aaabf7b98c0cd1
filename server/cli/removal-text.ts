// The text of a removal: the objects that it deletes, and apart from them those that hold data, each by the name that
// confirms it.
import type { RemovalView } from '../../shared/model/removal-views.ts'
import { countText, plainText } from './columns.ts'
import type { CliIo } from './io.ts'
import { askEach } from './io.ts'

/** `tense`: of the deletion. */
export function removalText(removals: readonly RemovalView[], tense: 'will be' | 'would be' | 'are'): string {
  const verb = (count: number) => (tense === 'are' && count === 1 ? 'is' : tense)
  return removals
    .map(({ project, service, clusters, deletes, holding, stays, takenOver }) => {
      const held = holding.map(
        ({ name, what, kind }) => `${name} (${what}${kind === 'contents' ? ', unless it contains no other objects' : ''})`,
      )
      const places = named(clusters.first, clusters.count, ', ')
      const each = clusters.count > 1 ? ' in each' : ''
      const blocks = [
        block(`${countText(deletes.count, 'object')} ${verb(deletes.count)} deleted${each}`, deletes.first, deletes.count),
        block(
          `${countText(held.length, 'object')} ${held.length === 1 ? 'holds' : 'hold'} data, deleted only if confirmed by name`,
          held,
          held.length,
        ),
        takenBlock(takenOver, verb),
        staysBlock(stays),
      ].filter((text) => text !== '')
      return `${plainText(`${project}/${service} in ${places}`)}:\n${blocks.length === 0 ? '  no objects\n' : blocks.join('')}`
    })
    .join('')
}

/** A service that takes over all of them is said once. */
function takenBlock(takenOver: RemovalView['takenOver'], verb: (count: number) => string): string {
  const { count, first } = takenOver ?? { count: 0, first: [] }
  const [by = '', ...others] = new Set(first.map((one) => one.by))
  const isOne = others.length === 0
  return block(
    `${countText(count, 'object')} ${verb(count)} taken over${isOne ? ` by ${by}` : ''}`,
    first.map((one) => (isOne ? one.name : `${one.name} (by ${one.by})`)),
    count,
  )
}

/** A reason that all have is said once. */
function staysBlock({ count, first }: RemovalView['stays']): string {
  const whys = new Set(first.map(({ why }) => why))
  const [why = ''] = whys
  const title = `${countText(count, 'object')} ${count === 1 ? 'stays' : 'stay'}`
  if (whys.size !== 1)
    return block(
      title,
      first.map((one) => `${one.name} (${one.why})`),
      count,
    )
  return block(
    `${title} (${why})`,
    first.map(({ name }) => name),
    count,
  )
}

function block(title: string, names: readonly string[], count: number): string {
  if (count === 0) return ''
  const more = count > names.length && names.length > 0 ? [`and ${count - names.length} more`] : []
  const lines = [...names, ...more]
  return `  ${title}${lines.length === 0 ? '' : ':'}\n${lines.map((line) => `    ${plainText(line)}\n`).join('')}`
}

const named = (first: readonly string[], count: number, separator: string): string =>
  `${first.join(separator)}${count > first.length ? ` and ${count - first.length} more` : ''}`

/** In all clusters. */
export const deletedCount = (removals: readonly RemovalView[]): number =>
  removals.reduce((sum, { clusters, deletes }) => sum + clusters.count * deletes.count, 0)

export const dataNames = (removals: readonly RemovalView[]): string[] =>
  [...new Set(removals.flatMap(({ holding }) => holding.map(({ name }) => name)))].sort()

/** Asks about the deed, and then about the data that no option names. Null means that the person said no to the deed.
 */
export async function askWithData(
  io: CliIo,
  question: string,
  names: readonly string[],
  given: readonly string[],
): Promise<string[] | null> {
  const open = names.filter((name) => !given.includes(name))
  const about = `Also delete ${open.length === 1 ? 'the object that holds' : `the ${open.length} objects that hold`} data: ${plainText(open.join(', '))}?`
  const [deed, data] = await askEach(io, open.length === 0 ? [question] : [question, about])
  return deed === true ? [...given, ...(data === true ? open : [])] : null
}

/** For a person or a script that left names out. */
export function keptText(names: readonly string[], given: readonly string[], command: string | null): string {
  const open = names.filter((name) => !given.includes(name))
  if (open.length === 0) return ''
  const flags = open.map((name) => `--confirm-data '${name}'`).join(' ')
  const now = command === null ? '' : `, or now: ${command} ${plainText(flags)}`
  return `kept until confirmed: ${plainText(open.join(', '))}\nhint: run \`skerry confirm\` after the clusters reported${now}\n`
}
