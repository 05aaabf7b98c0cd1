// Words that completion offers: every argument of every command has a source, and names come from the list that the
// line means.
import { expect, test } from 'bun:test'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { PROGRAMS } from '../../scripts/docs-pages/programs.ts'
import { ARGUMENTS, candidatesFor, type Names } from '../../server/cli/completion/candidates.ts'

const program = PROGRAMS['skerry'] as CommandUnknownOpts

function argumentsOf(command: CommandUnknownOpts, path: string): string[] {
  const own = command.registeredArguments.filter(({ argChoices }) => argChoices === undefined).map((one) => `${path} ${one.name()}`)
  return [...own, ...command.commands.flatMap((sub) => argumentsOf(sub, `${path} ${sub.name()}`.trim()))]
}

test('CL38 each argument of each command has a source of words, and no other', () => {
  expect(Object.keys(ARGUMENTS).sort()).toEqual(argumentsOf(program, '').sort())
})

/** Answers the name of the list, and what the line says about it. */
const names: Names = {
  ofList: async (list, { project = '-', cluster = '-' }) => [`${list} ${project} ${cluster}`],
  objects: async (cluster) => [`deployment/shop/of-${cluster}`],
  contexts: () => ['prod'],
}
const words = async (line: string): Promise<string[] | 'files'> => {
  const found = await candidatesFor(program, line.split(' '), names)
  return found === 'files' ? found : found.map(({ value }) => value)
}

test.each<[string, string[] | 'files']>([
  ['sync ', ['services - -']],
  ['sync -p shop ', ['services shop -']],
  ['why --project=shop ', ['services shop -']],
  ['diff ', ['services - -']],
  ['get services -p ', ['projects - -']],
  ['get services --cluster ', ['clusters - -']],
  ['query --saved ', ['saved-queries - -']],
  ['describe role-binding ', ['role-bindings - -']],
  ['get role/', ['role/roles - -']],
  ['delete project ', ['projects - -']],
  ['session revoke ', ['sessions - -']],
  ['token revoke ', ['tokens - -', 'agents - -']],
  ['notify test ', ['notification-sinks - -']],
  ['cluster rotate-recipient ', ['clusters - -']],
  ['webhook-secret create ', ['repositories - -']],
  ['trace --cluster oslo ', ['deployment/shop/of-oslo']],
  ['logs ', []],
  ['auth can-i secret', ['secret:write']],
  ['auth can-i read role', ['role-binding', 'role']],
  ['config use-context ', ['prod']],
  ['backup verify ', 'files'],
  ['token create ', []],
  ['get placements ', []],
])('CL38 %p', async (line, expected) => {
  expect(await words(line)).toEqual(expected)
})
