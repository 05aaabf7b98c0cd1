// `skerry doctor`, on the server's own machine: options in, a report for a person or as JSON, and an exit code out.
import { resolve } from 'node:path'
import type { OptionTable } from '../../shared/runtime/options.ts'
import { readRenderPlace } from '../control/render-place.ts'
import { examine } from '../doctor/examine.ts'
import { type DoctorReport, doctorReportSchema } from '../doctor/findings.ts'
import { readStorePlace } from '../store/store-place.ts'
import { createProgressLine } from './progress-line.ts'
import { RENDER_OPTIONS, SERVER_OPTIONS } from './server-options.ts'
import { type Flags, runVerb, type VerbIo } from './verb-io.ts'

export const DOCTOR_OPTIONS = {
  data: { ...SERVER_OPTIONS.data, help: 'Data folder of the server, which may run.' },
  store: SERVER_OPTIONS.store,
  storeFile: SERVER_OPTIONS.storeFile,
  ...RENDER_OPTIONS,
} as const satisfies OptionTable

export const runDoctor = (flags: Flags, io: VerbIo): Promise<number> =>
  runVerb('doctor', DOCTOR_OPTIONS, flags, io, async ({ data, store, storeFile, ...flagsOfRender }) => {
    const place = readStorePlace({ url: store, asFlag: flags['store'] !== undefined, file: storeFile, env: io.env })
    const render = readRenderPlace(flagsOfRender, io.env)
    const line = createProgressLine(io.errIsTty ? io.err : null, io.clock)
    try {
      const report = await examine({ dataDir: resolve(data), store: place }, { clock: io.clock, render, progress: line.show })
      line.clear()
      io.out(flags['output'] === 'json' ? `${JSON.stringify(doctorReportSchema.parse(report), null, 2)}\n` : reportText(report))
      return report.fine ? 0 : 1
    } finally {
      line.clear()
    }
  })

function reportText({ data, server, store, schema, facts, findings, fine, tookMs }: DoctorReport): string {
  const of = (name: string) => facts[name] ?? 0
  const lines = [
    `${data}: server ${server}, fleet store ${store === 'sqlite' ? 'SQLite' : 'PostgreSQL'}${schema === null ? '' : `, schema ${schema}`}`,
    `${of('clusters')} clusters, ${of('shardRows')} rows in shard files, ${of('contentFiles')} files of content` +
      (facts['contentUnused'] === undefined ? '' : ` (${of('contentUnused')} unused, ${of('contentUnusedBytes')} bytes)`),
    ...renderedWith(
      facts,
      findings.some(({ code }) => code === 'sandbox_broken'),
    ),
    ...(facts['lastBackup'] === undefined ? [] : [`last backup ${facts['lastBackup']}`]),
    ...(facts['fingerprint'] === undefined ? [] : [`key ${facts['fingerprint']}`]),
  ]
  for (const { severity, what, where, count, means, remedy } of findings) {
    lines.push('', `${severity}: ${what}`, ...where.map((place) => `  ${place}`))
    if (count > where.length) lines.push(`  and ${count - where.length} more`)
    lines.push(`  ${means}`, `  ${remedy}`)
  }
  lines.push('', fine ? `No problems found (${(tookMs / 1_000).toFixed(1)} s).` : `Problems found (${(tookMs / 1_000).toFixed(1)} s).`)
  return `${lines.join('\n')}\n`
}

function renderedWith(facts: DoctorReport['facts'], isBroken: boolean): string[] {
  const found = ['helm', 'helm3', 'kustomize', 'git', 'ssh'].flatMap((name) => (facts[name] === undefined ? [] : [`${facts[name]}`]))
  return facts['renderSandbox'] === undefined
    ? []
    : [
        `${isBroken ? 'renders plain manifests and Liquid only' : `renders by ${facts['renderSandbox']}`}${found.length === 0 ? '' : ` with ${found.join(', ')}`}`,
      ]
}
