// What a number or a pattern can judge. Every rule prints its reason; a file is never split or a word changed only to
// please this test.
import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { withoutBlocks } from './support/markdown.ts'
import {
  linesMatching,
  ROOT,
  repositoryFiles,
  type SourceFile,
  typeScriptFiles,
  withoutComments,
  withoutStrings,
} from './support/source-files.ts'

const LINES_MAX = 500
const isLockFile = ({ path }: SourceFile) => /(^|\/)(bun\.lock|Cargo\.lock|go\.sum|go\.mod|LICENSE)$/.test(path)
const isGenerated = ({ path, text }: SourceFile) =>
  path === 'scripts/cr-sqlite/bindings.rs' ||
  (path.startsWith('docs/reference/') && text.startsWith('<!-- Made by `scripts/docs generate`'))
const handWritten = repositoryFiles.filter((file) => !isLockFile(file) && !isGenerated(file) && !file.path.endsWith('.png'))
const thisFile = ({ path }: SourceFile) => path === 'tests/tidy.test.ts'
// A line that Biome was told to let pass, with a reason, passes here too.
const excused = (text: string) => text.replace(/(\/\/ biome-ignore [^\n]*\n)[^\n]*/g, '$1')
const code = typeScriptFiles.filter((file) => !thisFile(file)).map((file) => ({ ...file, text: withoutComments(excused(file.text)) }))
// Without what stands in strings: a test may hold a program for another process as text.
const bareCode = code.map((file) => ({ ...file, text: withoutStrings(file.text) }))
const tests = typeScriptFiles.filter(({ path }) => /\.test\.ts$|\.contract\.ts$/.test(path))
// A test about the agent imports its code or a kit that does; what an agent says has a catalogue of its own.
const isAboutAgent = ({ text }: SourceFile) => /from '[./]+(agent\/|support\/reconcile-)/.test(text)

function expectNone(offenders: string[], reason: string): void {
  expect(offenders.length === 0 ? '' : `${reason}\n  ${offenders.join('\n  ')}\n`).toBe('')
}

interface Pattern {
  name: string
  files: readonly SourceFile[]
  pattern: RegExp
  reason: string
}

// Words are put together here where this file itself would match them.
const registries = ['npmjs', 'yarnpkg', 'crates', 'golang', 'pypi', 'pythonhosted', 'debian', 'maven'].join('|')
const PATTERNS: readonly Pattern[] = [
  {
    name: 'no `any`',
    files: code,
    pattern: /\bas any\b|:\s*any\b(?!['"`])|<any\b|\bany\[\]/,
    reason: 'unknown and a schema at the door say what is known; any says nothing and spreads',
  },
  {
    name: 'no console',
    files: bareCode,
    pattern: /\bconsole\.\w+\(/,
    reason: 'logs go through Logger as fields, output of commands and scripts through process.stdout',
  },
  {
    name: 'no test runs alone',
    files: tests,
    pattern: /\b(test|describe|it)\.only\b/,
    reason: 'a forgotten .only switches off all other tests of its file',
  },
  {
    name: 'no plans in the tree',
    files: handWritten.filter((file) => !thisFile(file)),
    pattern: /\b(FIXME|TODO|XXX|HACK)\b/,
    reason: 'what is left to do is an issue; what is wrong is mended or said in the present tense',
  },
  {
    name: 'tests of the server and its client assert errors by code and values, not by sentences',
    files: tests.filter((file) => /^tests\/(unit|contract)\//.test(file.path) && !isAboutAgent(file)),
    // Five words in a row.
    pattern:
      /(\.toThrow|\bstringContaining|\b(message|detail|remedy)\)?\)\.to(Be|Contain|StartWith|EndWith))\(['"`/][^'"`]*(\b[A-Za-z’-]+[,;:]? ){4}[A-Za-z]/,
    reason: 'wording may change: compare the code, and names, paths and numbers with naming() of tests/support',
  },
  {
    name: 'unit tests do not sleep',
    files: bareCode.filter(({ path }) => path.startsWith('tests/unit/') || path.startsWith('tests/sim/')),
    pattern: /\bBun\.sleep\b|\bsetTimeout\(|\bsetInterval\(/,
    reason: 'time is a Clock that the test moves; a sleep is slow when it works and flaky when it does not',
  },
  {
    name: 'no package registry is named',
    files: repositoryFiles.filter((file) => !/(Cargo\.lock|go\.sum|go\.mod)$/.test(file.path)),
    pattern: new RegExp(`https?://[\\w.-]*\\b(${registries})\\b[\\w.-]*\\.(org|com|io|net)\\b`),
    reason: 'everybody has their own mirror, set in their own client',
  },
  {
    name: 'no path of somebody’s machine',
    files: repositoryFiles,
    pattern: /(?<![\w.-])\/(work|root|home|Users)\/(?!\$|\{)[\w.-]+/,
    reason: 'it exists on one machine only',
  },
  {
    name: 'no default export and no non-null `!`',
    files: code.filter(({ path }) => !path.endsWith('.d.ts')),
    pattern: /^export default\b|[\w\])]!(\.|\[|\)|,|;|$)/,
    reason: 'an import has one name everywhere; a value that may be missing is asked for',
  },
]

test.each(PATTERNS.map((entry) => [entry.name, entry] as const))('%s', (_, { files, pattern, reason }) => {
  expectNone(
    files.flatMap((file) => linesMatching(file, pattern)),
    reason,
  )
})

test(`no file written by hand has more than ${LINES_MAX} lines`, () => {
  const long = handWritten.flatMap(({ path, text }) => {
    const lines = text.split('\n').length - 1
    return lines > LINES_MAX ? [`${path}: ${lines}`] : []
  })
  expectNone(long, 'every god file once had 500 lines and a good reason for the next fifty; a split gives both halves a name')
})

const COLUMNS_MAX = 120
/** Nothing in it can be broken: one link, one address or one code span, perhaps as a list item. */
const UNBREAKABLE = /^\s*(?:[-*] |\d+\. )?(?:!?\[[^\]]*\]\([^)]*\)|`[^`]*`|\S+)[.,;:]?$/

/** Numbers of the lines of Markdown that are too long, outside of tables, code blocks and links. */
const wideLines = (markdown: string): number[] =>
  withoutBlocks(markdown)
    .split('\n')
    .flatMap((line, index) =>
      line.trimEnd().length <= COLUMNS_MAX || /^\s*\|/.test(line) || UNBREAKABLE.test(line.trimEnd()) ? [] : [index + 1],
    )

const LONG = 'word '.repeat(30)
const ADDRESS = `https://example.com/${'path/'.repeat(30)}`
test.each([
  ['a paragraph and a list item', `${LONG}\n\n- ${LONG}\n`, [1, 3]],
  ['a table', `| ${LONG} |\n`, []],
  ['a code block, also in a list, and the text after it', `- x:\n\n  \`\`\`sh\n  ${LONG}\n  \`\`\`\n\n${LONG}\n`, [7]],
  ['a link, an address, a code span', `[x](${ADDRESS})\n- <${ADDRESS}>\n\`${LONG}\`\n`, []],
  ['a link in a sentence that can be broken before it', `see [x](${ADDRESS})\n`, [1]],
  ['120 columns, one of them an umlaut', `${'ö'.repeat(59)} ${'x'.repeat(60)}\n`, []],
])('finds the wide lines of Markdown: %s', (_, markdown, expected) => expect(wideLines(markdown)).toEqual(expected))

test(`no line of Markdown written by hand has more than ${COLUMNS_MAX} columns`, () => {
  const markdown = handWritten.filter(({ path }) => path.endsWith('.md') && !path.startsWith('tests/'))
  expect(markdown.length).toBeGreaterThan(50)
  expectNone(
    markdown.flatMap(({ path, text }) => wideLines(text).map((line) => `${path}:${line}`)),
    'a longer line is hard to read and to compare; break it between words (tables, code blocks and single links may be longer)',
  )
})

test('every shell script parses as POSIX sh and can be executed', () => {
  const scripts = repositoryFiles.filter(({ text }) => text.startsWith('#!'))
  expect(scripts.length).toBeGreaterThan(4)
  const broken = scripts.flatMap(({ path, text }) => {
    const parse = Bun.spawnSync(['sh', '-n', join(ROOT, path)])
    if (!text.startsWith('#!/bin/sh\n')) return [`${path}: not #!/bin/sh`]
    if ((statSync(join(ROOT, path)).mode & 0o111) === 0) return [`${path}: chmod +x`]
    return parse.exitCode === 0 ? [] : [`${path}: ${parse.stderr.toString()}`]
  })
  expectNone(broken, 'entry scripts run before there is a Bun, on machines whose sh is not bash')
})

test('every test file belongs to a stage of scripts/check', () => {
  const homeless = typeScriptFiles.filter(
    ({ path }) => path.endsWith('.test.ts') && !/^tests\/([^/]+$|(unit|contract|sim|e2e)\/)/.test(path),
  )
  expectNone(
    homeless.map(({ path }) => path),
    'a test that nothing runs is worse than none',
  )
})

test('every file of the product and its scripts opens with what it is for', () => {
  const silent = handWritten.filter(
    ({ path, text }) => /^(shared|server|agent|client|scripts)\/.*\.tsx?$/.test(path) && !opensWithComment(text),
  )
  expectNone(
    silent.map(({ path }) => path),
    'a reader wants one to five lines on what the file is for and what it must never do',
  )
})

/** Its first line is a comment, or what comes right after the imports is: in a file of one export that sentence says it
 *  all. */
function opensWithComment(text: string): boolean {
  const comment = /^(\/\/|\/\*|#!)/
  const afterImports = text.replace(/^import\b[^'"]*['"][^'"]+['"][^\n]*\n/gm, '').trimStart()
  return comment.test(text) || comment.test(afterImports)
}

const RULE_ID = '[A-Z]{2}\\d+[a-z]?'

test('no comment of the product opens with Of, What, Who or Null:', () => {
  const opening = new RegExp(
    `^\\s*(?:/\\*\\*|//) (?:(?:${RULE_ID}(?:, )?)+[:.]? )?(?:Of|What|Whoever|Whatever|Whose|Who|Null:|Null means:|Undefined:)(?: |$)`,
  )
  const product = handWritten.filter(({ path }) => /^(shared|server|agent|client|scripts)\/.*\.tsx?$/.test(path))
  const opened = product.flatMap(({ path, text }) => {
    const lines = text.split('\n')
    const isInside = (index: number) => /^\s*\/\//.test(lines[index] ?? '') && /^\s*\/\//.test(lines[index - 1] ?? '')
    return lines.flatMap((line, index) => (opening.test(line) && !isInside(index) ? [`${path}:${index + 1}`] : []))
  })
  expectNone(opened, 'begin with the subject: "The digest of the row.", not "Of the row."')
})

test('a comment says what null and absent mean in a sentence', () => {
  const aside =
    /^\s*\*\s+(?:Null|Absent|Undefined): |^\s*(?:\/\/|\*|\/\*\*).*(?:; |\(|^\s*(?:\/\/|\*|\/\*\*) )(?:[Nn]ull|[Aa]bsent|[Uu]ndefined)(?: or \w+)?: /
  expectNone(
    handWritten.filter(({ path }) => /\.tsx?$/.test(path)).flatMap((file) => linesMatching(file, aside)),
    '"Null means that it never joined.", not "null: never joined"',
  )
})

test('no line of a comment has more than 120 columns', () => {
  const long = /^(?=.{121})\s*(?:\/\/|\*(?![A-Za-z])|\/\*\*)/
  expectNone(
    handWritten.filter(({ path }) => /\.tsx?$/.test(path)).flatMap((file) => linesMatching(file, long)),
    'break it between words',
  )
})

test('no comment is only a rule id', () => {
  const bare = new RegExp(`^\\s*(?:/\\*\\*|//) ?${RULE_ID}(?:(?:, | and )${RULE_ID})*\\.? ?(?:\\*/)?$`)
  expectNone(
    handWritten.filter(({ path }) => /\.tsx?$/.test(path)).flatMap((file) => linesMatching(file, bare)),
    'the id says where the rule is, not what it means here',
  )
})

/** The ids that SPEC defines: at the head of a list item or table row. */
function ruleIds(spec: string): string[] {
  return [...spec.matchAll(new RegExp(`^(?:[-*] |\\| )\\**(${RULE_ID})\\**[ |:]`, 'gm'))].map((match) => match[1] ?? '')
}

/** The ids that test names begin with, with their file. A name may begin with several: `CU1 CU4 …`, `PL3, PL6: …`. */
function quotedIds(): { id: string; path: string }[] {
  return tests.flatMap(({ path, text }) =>
    [...withoutComments(text).matchAll(new RegExp(`(['"\`])((?:${RULE_ID}[,:]? ?)+)(?=\\s*\\S)`, 'g'))].flatMap((match) =>
      [...(match[2] ?? '').matchAll(new RegExp(RULE_ID, 'g'))].map(([id]) => ({ id, path })),
    ),
  )
}

const spec = repositoryFiles
  .filter(({ path }) => /^shared\/SPEC[^/]*\.md$/.test(path))
  .map(({ text }) => text)
  .join('\n')

test('no rule id stands twice in SPEC', () => {
  const ids = ruleIds(spec)
  expect(ids.length).toBeGreaterThan(0)
  expectNone(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    'an id names one rule for ever',
  )
})

test('every rule of SPEC has a test whose name begins with its id', () => {
  const quoted = new Set(quotedIds().map(({ id }) => id))
  expectNone(
    ruleIds(spec).filter((id) => !quoted.has(id)),
    'a rule that nothing checks is a wish',
  )
})

test('no test quotes a rule that SPEC does not have', () => {
  const known = new Set(ruleIds(spec))
  const prefixes = new Set([...known].map((id) => id.slice(0, 2)))
  // Another prefix is somebody's word (a kind, a unit), not a rule: only ids that look like ours are judged.
  const unknown = quotedIds().filter(({ id }) => prefixes.has(id.slice(0, 2)) && !known.has(id))
  expectNone(
    unknown.map(({ id, path }) => `${path} quotes ${id}`),
    'write the rule first; ids are never invented in a test',
  )
})
