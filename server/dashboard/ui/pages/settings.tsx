// Choices of this browser, the keys, and what the server is.
import { Head } from '../parts/head.tsx'
import { Keys } from '../parts/legend-dialog.tsx'
import { Legend } from '../parts/mark.tsx'
import { Shown } from '../parts/states.tsx'
import { signOut } from '../state/account.ts'
import { useVersion } from '../state/reads.ts'
import { chooseTheme, THEMES, theme } from '../state/theme.ts'
import { text } from '../words/first.ts'

export function SettingsPage() {
  const version = useVersion()
  const { settings } = text
  return (
    <>
      <Head title={settings.title} />
      <div class="narrow stack wide">
        <section class="panel padded stack">
          <h2>{settings.theme}</h2>
          <fieldset class="chips plain">
            <legend class="hidden">{settings.theme}</legend>
            {THEMES.map((one) => (
              <button key={one} type="button" aria-pressed={theme.value === one} onClick={() => chooseTheme(one)}>
                {settings.themes[one]}
              </button>
            ))}
          </fieldset>
        </section>
        <section class="panel padded stack">
          <h2>{text.fleet.legend}</h2>
          <Legend />
        </section>
        <section class="panel padded stack">
          <h2>{settings.keyboard}</h2>
          <Keys />
        </section>
        <section class="panel padded stack">
          <h2>{settings.server}</h2>
          <Shown of={version}>
            {(info) => (
              <dl class="facts">
                {Object.entries(info)
                  .filter(([, value]) => typeof value === 'string')
                  .map(([key, value]) => (
                    <>
                      <dt>{key}</dt>
                      <dd class="mono">{String(value)}</dd>
                    </>
                  ))}
              </dl>
            )}
          </Shown>
        </section>
        <div>
          <button type="button" onClick={() => void signOut()}>
            {settings.signOut}
          </button>
        </div>
      </div>
    </>
  )
}
