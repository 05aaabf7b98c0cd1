// Modules that `skerry` loads before it parses its arguments, and the lookup of verbs.
import { expect, test } from 'bun:test'
import { typedVerb } from '../../server/cli/cli.ts'
import { VERB_GROUPS } from '../../server/cli/verbs.ts'
import { commandPaths, runCliWith } from '../support/cli-run.ts'
import { importsOf, productFiles, type SourceFile } from '../support/source-files.ts'

test('CL34 the start of the command line loads no schemas of resources, no server and no client', () => {
  const late = [
    /^shared\/model\/(views|resources)\.ts$/,
    /^shared\/adapters\/(yaml|crdt-db|sqlite)\.ts$/,
    /^server\/(?!cli\/|program|main|client-main)/,
    /^zod$/,
  ]
  const files = new Map(productFiles.map((file) => [file.path, file]))
  const found = new Map(['server/program.ts', 'server/client-main.ts'].map((path) => [path, path]))
  for (const [path, way] of found)
    for (const { specifier, target, typeOnly, isLate } of files.has(path) ? importsOf(files.get(path) as SourceFile) : [])
      if (!typeOnly && !isLate && !found.has(target ?? specifier)) found.set(target ?? specifier, `${target ?? specifier}, by ${way}`)
  // With them `skerry --help` takes 80 ms in place of 16: import what a verb needs where its action runs.
  expect([...found].filter(([name]) => late.some((pattern) => pattern.test(name))).map(([, way]) => way)).toEqual([])
})

test('every verb that is added has a place and a description in the table, and the other way round', async () => {
  const top = (await commandPaths()).filter((path) => !path.includes(' '))
  expect(top.toSorted()).toEqual(VERB_GROUPS.flatMap(({ verbs }) => Object.keys(verbs)).toSorted())
})

test.each([
  [['get', 'clusters'], 'get'],
  [['--context', 'delete', '--token=x', 'get'], 'get'],
  [['help', 'get'], 'get'],
  [['--help'], null],
  [[], null],
])('the verb of %j is %p', (argv, verb) => {
  expect(typedVerb(argv)).toBe(verb)
})

test('help names every verb by topic; `help get` is `get --help`', async () => {
  const { out } = await runCliWith(['--help'])
  for (const { topic, verbs } of VERB_GROUPS) {
    expect(out).toContain(`${topic}:`)
    for (const verb of Object.keys(verbs)) expect(out).toMatch(new RegExp(`^  ${verb} `, 'm'))
  }
  expect((await runCliWith(['help', 'get'])).out).toBe((await runCliWith(['get', '--help'])).out)
})
