// Sentences of API servers, their admission plugins and well-known policy engines, as patterns that tell names, paths,
// nested sentences and free text apart. Pure.
import { fieldErrors, mergeErrors } from './field-errors.ts'
import { endOfBrackets } from './go-value.ts'
import { type Draft, draft, fixed, HOLE_PIECE, type Piece, together } from './pieces.ts'
import { isQuotedSecret } from './secret-keys.ts'

/** The letter of a group tells what it holds: `n` a name, `o` the name of an object of the kind `n1`, `d` digits, `p` a
 *  path, `r` a nested sentence, `e` field errors, `m` merge errors, `c` conflicts, `g` rules of RBAC, `y` rules of
 *  Kyverno, `f` and `u` free text. */
const SENTENCES: readonly RegExp[] = [
  /^(?<n1>[^\s"]+) "(?<o1>[^"]*)" (?:not found|already exists)$/d,
  /^(?<n1>[^\s"]+)(?: "(?<o1>[^"]*)")? is forbidden: (?<r1>.+)$/ds,
  /^forbidden: (?<r1>.+)$/ds,
  /^(?<n1>[^\s"]+) "(?<o1>[^"]*)" is invalid: (?<e1>.+)$/ds,
  /^object is being deleted: (?<r1>.+)$/ds,
  /^Operation cannot be fulfilled on (?<n1>\S+) "(?<o1>[^"]*)": (?<r1>.+)$/ds,
  /^Apply failed with (?<d1>\d+) conflicts?: (?<c1>.+)$/ds,
  /^User "(?<n1>[^"]*)" cannot (?<n2>\w+) resource "(?<n3>[^"]*)" in API group "(?<n4>[^"]*)" (?:in the namespace "(?<n5>[^"]*)"|at the cluster scope)(?:: (?<r1>.+))?$/ds,
  /^User "(?<n1>[^"]*)" cannot (?<n2>\w+) path "(?<n3>[^"]*)"(?:: (?<r1>.+))?$/ds,
  /^user "(?<n1>[^"]*)" \(groups=(?<f1>\[[^\]]*\])\) is attempting to grant RBAC permissions not currently held:\s*(?<g1>.+)$/ds,
  /^(?:RBAC|Error creating|Internal error occurred|failed to call webhook): (?<r1>.+)$/ds,
  /^exceeded quota: (?<n1>[^\s,]+), requested: (?<f1>.+)$/ds,
  /^failed quota: (?<n1>[^\s:]+): (?<f1>.+)$/ds,
  /^unable to create new content in namespace (?<n1>\S+) because it is being terminated$/d,
  /^error looking up service account (?<n1>[^\s:]+): (?<r1>.+)$/ds,
  /^no PriorityClass with name (?<n1>\S+) was found$/d,
  /^(?:would violate|violates) PodSecurity "(?<n1>[^"]*)": (?<f1>.+)$/ds,
  /^existing pods in namespace "(?<n1>[^"]*)" violate the new PodSecurity enforce level "(?<n2>[^"]*)"$/d,
  /^ValidatingAdmissionPolicy '(?<n1>[^']*)' with binding '(?<n2>[^']*)' denied request: (?<r1>.+)$/ds,
  /^ValidatingAdmissionPolicy '(?<n1>[^']*)' denied request: (?<r1>.+)$/ds,
  /^policy '(?<n1>[^']*)' with binding '(?<n2>[^']*)' denied request: (?<r1>.+)$/ds,
  /^Validation failed for ValidatingAdmissionPolicy '(?<n1>[^']*)' with binding '(?<n2>[^']*)': (?<r1>.+)$/ds,
  /^admission webhook "(?<n1>[^"]*)" denied the request without explanation$/d,
  /^admission webhook "(?<n1>[^"]*)" denied the request: (?<r1>.+)$/ds,
  /^failed calling webhook "(?<n1>[^"]*)": (?<r1>.+)$/ds,
  /^conversion webhook for (?<n1>[^\s,]+), Kind=(?<n2>\w+) failed: (?<r1>.+)$/ds,
  /^(?:Get|Head|Post|Patch|Put|Delete) "(?<u1>[^"]*)": (?<r1>.+)$/ds,
  /^no endpoints available for service "(?<n1>[^"]*)"$/d,
  /^failed to create typed (?:patch|live) object \((?<n1>[^;]*); (?<n2>[^,]*), Kind=(?<n3>\w+)\): (?<m1>.+)$/ds,
  /^failed to convert (?:new|live|patched|merged) object \((?<n1>[^;]*); (?<n2>[^,]*), Kind=(?<n3>\w+)\) to proper version: (?<r1>.+)$/ds,
  /^unable to convert unstructured object to (?<n1>[^,]*), Kind=(?<n2>\w+): (?<f1>.+)$/ds,
  /^(?:unknown|duplicate) field "(?<p1>[^"]*)"$/d,
  /^strict decoding error: (?<f1>.+)$/ds,
  /^(?:resource|policy) (?<n1>[^\s]+) was blocked due to the following policies\s*:?\s*(?<y1>.+)$/ds,
  /^(?<n1>[^\s/]+)\/(?<n2>[^\s/]+)\/(?<n3>[^\s/]+) was blocked due to the following policies\s*:?\s*(?<y1>.+)$/ds,
]

const DEPTH_MAX = 8

/** `kind` is that of the object that the text is about, '' if unknown. */
export function sentence(raw: string, kind: string, depth = 0): Draft {
  const text = raw.trim()
  for (const pattern of depth > DEPTH_MAX ? [] : SENTENCES) {
    const match = pattern.exec(text)
    if (match !== null) return filled(text, match, kind, depth)
  }
  return fieldErrors(text, kind) ?? draft(...freePieces(text))
}

function filled(text: string, match: RegExpExecArray, kind: string, depth: number): Draft {
  const drafts: Draft[] = []
  let at = 0
  const groups = Object.entries(match.indices?.groups ?? {}).filter(([, span]) => span !== undefined)
  for (const [name, [start, end]] of groups.sort(([, a], [, b]) => a[0] - b[0])) {
    const isSecret = name === 'o1' && isQuotedSecret(match.groups?.['n1'] ?? '', text.slice(start, end))
    const held = isSecret ? draft(HOLE_PIECE) : part(name[0] ?? '', text.slice(start, end), kind, depth)
    drafts.push(draft(fixed(text.slice(at, start))), held)
    at = end
  }
  return together([...drafts, draft(fixed(text.slice(at)))])
}

function part(what: string, text: string, kind: string, depth: number): Draft {
  switch (what) {
    case 'n':
    case 'o':
      return draft({ kind: 'name', text })
    case 'd':
      return draft(fixed(text))
    case 'p':
      return draft({ kind: 'path', text })
    case 'r':
      return sentence(text, kind, depth + 1)
    case 'e':
      return fieldErrors(text, kind) ?? draft(...freePieces(text))
    case 'm':
      return mergeErrors(text)
    case 'c':
      return conflicts(text)
    case 'g':
      return grants(text)
    case 'y':
      return draft(...freePieces(withoutYaml(text)))
    default:
      return draft(...freePieces(text))
  }
}

/** Brackets around the whole text hold several errors, not a list of names. */
function freePieces(text: string): Piece[] {
  const inner =
    text.startsWith('[') && text.length > 2 && endOfBrackets(text, 0) === text.length ? /^\[(.*)\]$/s.exec(text)?.[1] : undefined
  return inner === undefined ? [{ kind: 'free', text }] : [fixed('['), { kind: 'free', text: inner }, fixed(']')]
}

const CONFLICT =
  /(?:conflict with|conflicts with) "(?<n1>[^"]*)"(?: with subresource "(?<n2>[^"]*)")?(?: using (?<n3>[^\s:]+))?(?: at (?<n4>\S+?))?:(?<p1> [^\n]+|(?:\n- [^\n]+)+)/dg

/** Owners of fields: one field in the line of its owner, or several below it. */
function conflicts(text: string): Draft {
  const drafts: Draft[] = []
  for (const match of text.matchAll(CONFLICT)) {
    const { n1 = '', n2, n3, p1 = '' } = match.groups ?? {}
    const paths = p1
      .split('\n')
      .map((line) => line.replace(/^ ?(?:- )?/, ''))
      .filter((line) => line !== '')
    const owner: Piece[] = [fixed('conflict with "'), { kind: 'name', text: n1 }, fixed('"')]
    if (n2 !== undefined) owner.push(fixed(' with subresource "'), { kind: 'name', text: n2 }, fixed('"'))
    if (n3 !== undefined) owner.push(fixed(' using '), { kind: 'name', text: n3 })
    const fields = paths.map((path) => draft({ kind: 'path', text: path }))
    drafts.push(together([draft(...owner, fixed(': ')), together(fields, ', ')]))
  }
  return drafts.length === 0 ? draft(HOLE_PIECE) : together(drafts, '; ')
}

const GRANT = /\{(?:(?:APIGroups|Resources|ResourceNames|Verbs|NonResourceURLs):\[(?:"[-\w.*/:]*"(?:,? )?)*\](?:, )?)+\}/g

/** Rules of a role, which are no secrets. */
function grants(text: string): Draft {
  const rules = text.match(GRANT) ?? []
  return rules.length === 0
    ? draft(HOLE_PIECE)
    : together(
        rules.map((rule) => draft({ kind: 'value', text: rule })),
        ', ',
      )
}

/** Kyverno prints rules as YAML, which quotes whole sentences. */
function withoutYaml(text: string): string {
  return text
    .replace(/: '((?:[^']|'')*)'(?=\s*(?:\n|$))/g, (_, inner: string) => `: ${inner.replaceAll("''", "'")}`)
    .replace(/: "((?:[^"\\]|\\.)*)"(?=\s*(?:\n|$))/g, (_, inner: string) => `: ${inner.replace(/\\(.)/g, '$1')}`)
    .replace(/: [|>][-+]?\n/g, ': ')
}
