// `skerry-agent run` as a process, with and without the file of its join token. Neither a server nor an API server
// answers.
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentFiles } from '../../agent/agent.ts'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { createStateBox } from '../../agent/state/state-box.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'

const NOWHERE = 'http://127.0.0.1:1'
const KUBECONFIG = {
  ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'site' },
  clusters: [{ name: 'site', cluster: { server: 'https://127.0.0.1:1' } }],
  users: [{ name: 'agent', user: { token: 'x' } }],
  contexts: [{ name: 'site', context: { cluster: 'site', user: 'agent' } }],
}
const IDENTITY = { clusterId: 'c1', agentId: 'a1', incarnation: 1, serverKeys: [], keyLinks: [] }

/** An agent without and with an identity in its data folder. */
function startAgent(joined: boolean, tokenFile: string) {
  const dir = tempDir()
  const data = join(dir, 'agent')
  mkdirSync(data, { mode: 0o700 })
  if (joined) {
    const state = openAgentState(agentFiles(data).state, undefined, NO_LOG, createStateBox(loadAgentKeys(data).state))
    state.setIdentity(IDENTITY)
    state.close()
  }
  writeFileSync(join(dir, 'kubeconfig'), JSON.stringify(KUBECONFIG))
  const words = ['--data', data, '--server', NOWHERE, '--cluster', 'oslo', '--kubeconfig', join(dir, 'kubeconfig')]
  return Bun.spawn([process.execPath, join(ROOT, 'agent/main.ts'), 'run', ...words, '--join-token-file', tokenFile], {
    ...{ stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
}

test('IK14 an agent that has joined starts after its join token was deleted', async () => {
  const agent = startAgent(true, '/nowhere/join-token')
  let log = ''
  let isTold = false
  for await (const chunk of agent.stderr.pipeThrough(new TextDecoderStream())) {
    log += chunk
    if (!isTold && log.includes('"agent started"')) agent.kill('SIGTERM')
    isTold = log.includes('"agent started"')
  }
  expect([await agent.exited, isTold ? '' : log]).toEqual([0, ''])
})

test('IK14 an agent that has not joined names the file that is missing', async () => {
  const agent = startAgent(false, '/nowhere/join-token')
  expect(await agent.exited).toBe(1)
  expect(await new Response(agent.stderr).text()).toContain('--join-token-file /nowhere/join-token does not exist')
})
