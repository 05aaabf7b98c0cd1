// What the doctor says of programs and sandbox.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { doctorReportSchema } from '../../server/doctor/findings.ts'
import { runDoctor } from '../../server/verbs/doctor-verb.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { renderProgram, searchPath } from '../support/render-programs.ts'
import { tempDir } from '../support/temp-dir.ts'

const programs = { helm: renderProgram('helm'), helm3: renderProgram('helm3'), kustomize: renderProgram('kustomize') }

async function doctor(flags: Record<string, string>, path: string) {
  const data = join(tempDir(), 'data')
  await fillDataFolder(data)
  let out = ''
  let err = ''
  const io = {
    env: { PATH: path },
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    errIsTty: false,
    onStop: () => {},
    clock: systemClock,
  }
  const code = await runDoctor({ data, output: 'json', ...flags }, io)
  if (out === '') throw new Error(err)
  const report = doctorReportSchema.parse(JSON.parse(out))
  return { code, report, codes: report.findings.map((finding) => finding.code).filter((name) => /sandbox|program/.test(name)) }
}

test('SB12 everything is there: versions, and nothing to say', async () => {
  const { report, codes } = await doctor(programs, searchPath().join(':'))
  expect(codes).toEqual([])
  expect(report.facts).toMatchObject({
    renderSandbox: 'bubblewrap',
    helm: expect.stringMatching(/^helm 4\./),
    helm3: expect.stringMatching(/^helm 3\./),
    kustomize: expect.stringMatching(/^kustomize 5\./),
    git: expect.stringMatching(/^git version/),
    ssh: expect.stringMatching(/^OpenSSH/),
  })
})

test('SB12 nothing is there: each is named, with what to do, and it is no reason for exit code 1', async () => {
  const { code, report, codes } = await doctor({}, '/nonexistent')
  expect([code, report.fine]).toEqual([0, true])
  expect(codes.sort()).toEqual(['program_missing', 'sandbox_broken'])
  const missing = report.findings.find((finding) => finding.code === 'program_missing')
  expect(missing?.where.map((place) => place.split(':')[0])).toEqual(['helm', 'helm3', 'kustomize', 'git', 'ssh'])
})

test('SB12 limits is said', async () => {
  const { codes } = await doctor({ ...programs, renderSandbox: 'limits' }, searchPath().join(':'))
  expect(codes).toEqual(['sandbox_off'])
})
