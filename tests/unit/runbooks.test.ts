// An alert that wakes somebody up leads to a section that says what to do: for each alert one, and no section for an
// alert that is gone.
import { expect, test } from 'bun:test'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { anchorsOf, markdownFiles } from '../support/markdown.ts'
import { repositoryFiles } from '../support/source-files.ts'

const RUNBOOKS = 'docs/how-to/runbooks.md'
const rules = parseYamlDocuments(repositoryFiles.find(({ path }) => path === 'monitoring/alerts.yaml')?.text ?? '', { file: 'alerts.yaml' })
const value = rules.documents[0]?.value as { groups: Array<{ rules: Array<{ alert: string; annotations: Record<string, string> }> }> }
const alerts = value.groups.flatMap(({ rules }) => rules)
const page = markdownFiles.find(({ path }) => path === RUNBOOKS) ?? { path: RUNBOOKS, text: '' }
const sections = page.text.split(/^## /m).slice(1)

test('OB4 each alert names its section of the runbooks', () => {
  expect(alerts.length).toBeGreaterThanOrEqual(14)
  const anchors = anchorsOf(page)
  const wrong = alerts.filter(({ alert, annotations }) => {
    const [path, anchor] = annotations['runbook']?.split('#') ?? []
    return path !== RUNBOOKS || anchor !== alert.toLowerCase() || ![...anchors].includes(anchor)
  })
  expect(wrong.map(({ alert }) => alert)).toEqual([])
})

test('OB4 each section about an alert is about one that exists, and has numbered steps', () => {
  const named = sections.filter((section) => section.startsWith('Skerry'))
  expect(named.map((section) => section.split('\n')[0] ?? '').sort()).toEqual(alerts.map(({ alert }) => alert).sort())
  expect(named.filter((section) => !/^1\. /m.test(section) || !/^2\. /m.test(section))).toEqual([])
})
