// Templates of notifications: the same engine and limits as those of manifests, with one variable, `message`.
import type { Problem } from '../../../shared/runtime/error.ts'
import { renderText } from './engine.ts'
import { Meter } from './limits.ts'

const TEXT_MAX = 20_000
const PROBLEMS_MAX = 20

/** By the name of the field that has the template. With a problem no text counts. */
export function renderMessage(
  templates: Readonly<Record<string, string>>,
  message: Readonly<Record<string, unknown>>,
): { texts: Record<string, string>; problems: Problem[] } {
  const texts: Record<string, string> = {}
  const problems: Problem[] = []
  const meter = new Meter()
  const inputs = { cluster: null, config: {}, service: { name: '', project: '', namespace: null }, source: { version: '' } }
  for (const [field, template] of Object.entries(templates)) {
    meter.begin()
    const rendered = renderText(template, { file: `spec.template.${field}`, line: null, message }, inputs, undefined, meter)
    if (rendered.kind === 'failed') problems.push(...rendered.problems)
    else texts[field] = rendered.text.slice(0, TEXT_MAX)
  }
  return { texts, problems: problems.slice(0, PROBLEMS_MAX).map(({ path, message: said }) => ({ path, message: said.slice(0, 500) })) }
}
