// A render as people read it: the same text whether the server or this machine rendered it.
import type { RenderView } from '../model/render-views.ts'
import type { Problem } from '../runtime/error.ts'
import { toYaml } from './yaml.ts'

export const RENDER_OUTPUTS = ['yaml', 'json', 'name'] as const
export type RenderOutput = (typeof RENDER_OUTPUTS)[number]

export function renderText({ objects }: Pick<RenderView, 'objects'>, output: RenderOutput): string {
  switch (output) {
    case 'json':
      return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, null, 2)}\n`
    case 'name':
      return objects.map((object) => `${nameOf(object)}\n`).join('')
    case 'yaml':
      return objects.map((object) => `---\n${toYaml(object)}`).join('')
  }
}

function nameOf({ kind, metadata }: Record<string, unknown>): string {
  const { namespace, name, generateName } = (typeof metadata === 'object' && metadata !== null ? metadata : {}) as Record<string, unknown>
  return [kind, namespace, name ?? generateName].filter((part) => typeof part === 'string').join('/')
}

/** `file:line:col: message`, then the line as its author wrote it, with a caret below the column, unless the line is
 *  cut at its beginning. */
export function problemText({ path, message, excerpt }: Problem): string {
  const first = `${path}: ${message}\n`
  if (excerpt === undefined) return first
  const column = Number(/:\d+:(\d+)$/.exec(path)?.[1] ?? 0)
  const line = excerpt.replaceAll('\t', ' ')
  const caret = column > 0 && !line.startsWith('…') && column <= line.length + 1 ? `    ${' '.repeat(column - 1)}^\n` : ''
  return `${first}    ${line}\n${caret}`
}
