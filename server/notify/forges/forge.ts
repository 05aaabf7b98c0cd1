// Commit statuses and comments on GitHub, GitLab and Gitea: the requests as their API documents have them. A status is
// keyed by its context and a comment by a mark in its text, so that a second try changes what the first one wrote.
import type { ForgeType, NotificationSinkSpec } from '../../../shared/model/notifications.ts'
import type { CommitDoc } from '../../fleet/notification-records.ts'
import { type Answer, type HttpRequest, jsonOf, request } from '../sinks/http.ts'
import { type Sending, type Sent, SinkError, secretOf } from '../sinks/sink.ts'

export type CommitMessage = Omit<CommitDoc, 'type'> & { url: string }

interface Target {
  url: string
  repository: string
  headers: Record<string, string>
}

interface Forge {
  headers(token: string): Record<string, string>
  status(to: Target, message: CommitMessage): HttpRequest
  /** Whether the answer says that the status is as it should be already. */
  isSame?(answer: Answer): boolean
  pulls(to: Target, sha: string): HttpRequest
  pullNumbers(answer: Answer): number[]
  /** Oldest first; `page` counts from 1. */
  comments(to: Target, pull: number, page: number): HttpRequest
  /** Comments of a full page. Null means that one answer has all of them. */
  commentsAPage: number | null
  newComment(to: Target, pull: number, body: string): HttpRequest
  editComment(to: Target, pull: number, id: number, body: string): HttpRequest
  /** A request that works with a token that may do all of this. */
  probe(to: Target): HttpRequest
}

const DESCRIPTION_MAX = 140
/** Pull requests of one commit that get a comment. */
const PULLS_MAX = 3
const COMMENTS_A_PAGE = 100
/** Pages of comments that are read for one mark. */
const PAGES_MAX = 30
/** Bytes of one page: a comment has up to 64 KiB. */
const COMMENTS_BYTES_MAX = 8 * 1024 * 1024

const contextOf = ({ project, service }: CommitMessage): string => `skerry/${project}/${service}`
const markOf = ({ project, service }: CommitMessage): string => `<!-- skerry ${project}/${service} -->`

const statusBody = (message: CommitMessage) => ({
  target_url: message.url,
  description: message.description.slice(0, DESCRIPTION_MAX),
  context: contextOf(message),
})

const github: Forge = {
  headers: (token) => ({ authorization: `Bearer ${token}`, accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }),
  status: ({ url, repository }, message) => ({
    url: `${url}/repos/${repository}/statuses/${message.sha}`,
    body: { state: message.state, ...statusBody(message) },
  }),
  pulls: ({ url, repository }, sha) => ({ method: 'GET', url: `${url}/repos/${repository}/commits/${sha}/pulls` }),
  pullNumbers: (answer) => numbersIn(answer, 'number'),
  comments: ({ url, repository }, pull, page) => ({
    method: 'GET',
    url: `${url}/repos/${repository}/issues/${pull}/comments?per_page=${COMMENTS_A_PAGE}&page=${page}`,
  }),
  commentsAPage: COMMENTS_A_PAGE,
  newComment: ({ url, repository }, pull, body) => ({ url: `${url}/repos/${repository}/issues/${pull}/comments`, body: { body } }),
  editComment: ({ url, repository }, _, id, body) => ({
    method: 'PATCH',
    url: `${url}/repos/${repository}/issues/comments/${id}`,
    body: { body },
  }),
  probe: ({ url, repository }) => ({ method: 'GET', url: `${url}/repos/${repository}` }),
}

/** The same API but for the token, and for the pull request of a commit. */
const gitea: Forge = {
  ...github,
  headers: (token) => ({ authorization: `token ${token}`, accept: 'application/json' }),
  pulls: ({ url, repository }, sha) => ({ method: 'GET', url: `${url}/repos/${repository}/commits/${sha}/pull` }),
  pullNumbers(answer) {
    const { number } = jsonOf(answer)
    return typeof number === 'number' ? [number] : []
  },
  comments: ({ url, repository }, pull) => ({ method: 'GET', url: `${url}/repos/${repository}/issues/${pull}/comments` }),
  commentsAPage: null,
}

const GITLAB_STATE = { pending: 'pending', success: 'success', failure: 'failed' } as const
const gitlabProject = ({ url, repository }: Target): string => `${url}/projects/${encodeURIComponent(repository)}`

const gitlab: Forge = {
  headers: (token) => ({ 'private-token': token }),
  status: (to, message) => ({
    url: `${gitlabProject(to)}/statuses/${message.sha}`,
    body: { state: GITLAB_STATE[message.state], ...statusBody(message) },
  }),
  // GitLab refuses a status that does not change the state.
  isSame: ({ status, text }) => status === 400 && text.includes('Cannot transition status'),
  pulls: (to, sha) => ({ method: 'GET', url: `${gitlabProject(to)}/repository/commits/${sha}/merge_requests` }),
  pullNumbers: (answer) => numbersIn(answer, 'iid'),
  comments: (to, pull, page) => ({
    method: 'GET',
    url: `${gitlabProject(to)}/merge_requests/${pull}/notes?order_by=created_at&sort=asc&per_page=${COMMENTS_A_PAGE}&page=${page}`,
  }),
  commentsAPage: COMMENTS_A_PAGE,
  newComment: (to, pull, body) => ({ url: `${gitlabProject(to)}/merge_requests/${pull}/notes`, body: { body } }),
  editComment: (to, pull, id, body) => ({ method: 'PUT', url: `${gitlabProject(to)}/merge_requests/${pull}/notes/${id}`, body: { body } }),
  probe: (to) => ({ method: 'GET', url: gitlabProject(to) }),
}

const FORGES: Readonly<Record<ForgeType, Forge>> = { github, gitlab, gitea }

function targetOf(spec: NotificationSinkSpec, sending: Sending): { forge: Forge; to: Target; comments: boolean } {
  for (const type of Object.keys(FORGES) as ForgeType[]) {
    const own = spec[type]
    if (own === undefined) continue
    const forge = FORGES[type]
    const to = { url: own.url.replace(/\/+$/, ''), repository: own.repository, headers: forge.headers(secretOf(sending, 'token')) }
    return { forge, to, comments: own.comments === true }
  }
  throw new SinkError('the sink is not for commit statuses', { retryable: false })
}

/** The state of a commit, and the comment on its pull request if the sink wants one. */
export async function forgeStatus(spec: NotificationSinkSpec, message: CommitMessage, sending: Sending): Promise<Sent> {
  const { forge, to, comments } = targetOf(spec, sending)
  const call = (one: HttpRequest, allowed: readonly number[] = []) =>
    request(sending, { ...one, headers: { ...to.headers, ...one.headers } }, allowed)
  const status = forge.status(to, message)
  const answer = await call(status, forge.isSame === undefined ? [] : [400])
  if (answer.status === 400 && forge.isSame?.(answer) !== true) await call(status) // the refusal, with its text
  if (!comments) return { ref: message.sha, detail: `status ${message.state}` }
  const pulls = forge.pullNumbers(await call(forge.pulls(to, message.sha), [404, 409, 422])).slice(0, PULLS_MAX)
  const body = commentOf(message)
  const findComment = async (pull: number): Promise<number | null> => {
    for (let page = 1; page <= PAGES_MAX; page++) {
      const comments = commentsIn(await call({ ...forge.comments(to, pull, page), answerBytesMax: COMMENTS_BYTES_MAX }))
      const held = comments.find(({ body: text }) => typeof text === 'string' && text.startsWith(markOf(message)))
      if (typeof held?.['id'] === 'number') return held['id']
      if (forge.commentsAPage === null || comments.length < forge.commentsAPage) return null
    }
    return null
  }
  for (const pull of pulls) {
    const held = await findComment(pull)
    await call(held === null ? forge.newComment(to, pull, body) : forge.editComment(to, pull, held, body))
  }
  return { ref: message.sha, detail: `status ${message.state}, ${pulls.length} comments` }
}

/** Whether the token reads the repository: a test writes no status. */
export async function forgeTest(spec: NotificationSinkSpec, sending: Sending): Promise<Sent> {
  const { forge, to } = targetOf(spec, sending)
  await request(sending, { ...forge.probe(to), headers: to.headers })
  return { ref: null, detail: `the token reads ${to.repository}` }
}

const WORDS = { pending: 'In progress', success: 'Applied', failure: 'Failed' } as const

const commentOf = (message: CommitMessage): string =>
  `${markOf(message)}\n**Skerry: ${message.project}/${message.service}** at ${message.sha.slice(0, 7)}\n\n${WORDS[message.state]}: ${message.description}\n\n[Details](${message.url})`

function listIn({ text }: Answer): Array<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value.filter((one) => typeof one === 'object' && one !== null) : []
  } catch {
    return []
  }
}

const numbersIn = (answer: Answer, field: string): number[] =>
  listIn(answer).flatMap((one) => (typeof one[field] === 'number' ? [one[field]] : []))

/** A list that cannot be read may hold our comment: writing another one would repeat it at each change. */
function commentsIn(answer: Answer): Array<Record<string, unknown>> {
  if (!answer.text.trimEnd().endsWith(']')) throw new SinkError('the list of comments is too long to be read', { retryable: false })
  return listIn(answer)
}
