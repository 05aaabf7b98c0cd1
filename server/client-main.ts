// The process of `skerry` on people's machines: the command line without a server, for systems that a server does not
// run on.
import { onReaderGone, readerGone } from '../shared/adapters/closed-pipe.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../shared/protocol/version.ts'
import { COMMIT, VERSION } from '../shared/runtime/build-info.ts'
import { systemClock } from '../shared/runtime/clock.ts'
import { runCli } from './cli/cli.ts'
import { openBrowser } from './cli/open-browser.ts'
import { runProgramOf } from './cli/run-program.ts'

onReaderGone([process.stdout, process.stderr], () => process.exit(0))

/** Windows names the home folder differently. */
const env = { ...process.env, HOME: process.env['HOME'] ?? process.env['USERPROFILE'] }

process.exitCode = await runCli({
  client: {
    render: {
      table: {},
      run: async () => {
        const { AppError } = await import('../shared/runtime/error.ts')
        throw new AppError('bad_options', {
          detail: 'this build of skerry cannot render on this machine',
          remedy: 'Leave -f out to render on the server, or use the build for Linux servers.',
        })
      },
    },
    pack: async (folder) => (await import('./local-render/pack-folder.ts')).packFolder(folder),
  },
  version: async () => {
    const protocol = { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION }
    return {
      info: { version: VERSION, commit: COMMIT, bun: Bun.version, platform: `${process.platform}/${process.arch}`, protocol },
      text: `skerry ${VERSION} (client, commit ${COMMIT}, Bun ${Bun.version}, protocol ${protocol.min}-${protocol.max})`,
    }
  },
  io: {
    ...{ argv: process.argv.slice(2), env, fetch, clock: systemClock, openBrowser, run: runProgramOf },
    ...{ stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
    isTty: process.stdout.isTTY && process.stdin.isTTY,
    columns: process.stdout.columns,
    get signal() {
      return readerGone(1)
    },
  },
})
