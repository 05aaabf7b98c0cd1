// Names of files and folders that are templates: what a template makes is again one line that names a place in a tree,
// and nothing that a message or a tree could take for something else.

import type { Problem } from '../../shared/runtime/error.ts'
import { SOURCE_PATH_LENGTH_MAX } from '../sources/source.ts'
import type { RenderInputs } from './inputs.ts'
import { renderText } from './liquid/engine.ts'
import type { Meter } from './liquid/limits.ts'

export type MadeName = { kind: 'name'; name: string } | { kind: 'refused'; problems: Problem[] }

const IS_TEMPLATE = /\{\{|\{%/
export const isTemplateText = (text: string): boolean => IS_TEMPLATE.test(text)

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f\u2028\u2029]/

/** `from`: the field that it is written in, for messages. A name that is no template is itself. */
export function makeName(written: string, from: string, inputs: RenderInputs, meter?: Meter): MadeName {
  if (!isTemplateText(written)) return { kind: 'name', name: written }
  const rendered = renderText(written, { file: from, line: null }, inputs, undefined, meter)
  if (rendered.kind === 'failed') return { kind: 'refused', problems: rendered.problems }
  const name = rendered.text
  const wrong =
    name === '' ? 'nothing' : name.length > SOURCE_PATH_LENGTH_MAX ? 'name too long' : CONTROL.test(name) ? 'more than one line' : null
  if (wrong === null) return { kind: 'name', name }
  return {
    kind: 'refused',
    problems: [{ path: from, message: `the template of this name results in ${wrong}; expected a relative path`, excerpt: written }],
  }
}
