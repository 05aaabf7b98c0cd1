// Sign-in: by a provider where the server has one, or with an API token.
import { useEffect, useState } from 'preact/hooks'
import { Logo } from '../parts/icons.tsx'
import { RefusalNote } from '../parts/states.tsx'
import { openSession, type Provider, signInOffer, signInWith, signOut } from '../state/account.ts'
import { session } from '../state/session.ts'
import { text } from '../words/first.ts'

export function SignIn() {
  const [offered, setOffered] = useState<Provider[]>([])
  const [isWorking, setWorking] = useState(false)
  const now = session.value
  const why = now.state === 'out' ? now.why : null
  useEffect(() => {
    document.title = `${text.signIn.title} · ${text.product}`
    void signInOffer().then(setOffered)
  }, [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const token = new FormData(event.currentTarget as HTMLFormElement).get('token')
    if (typeof token !== 'string' || token.trim() === '') return
    setWorking(true)
    await signInWith(token, text.signIn.refused)
    setWorking(false)
  }
  return (
    <main class="sign">
      <div class="panel">
        <Brand />
        {offered.map(({ name, url }) => (
          <a key={name} class="button primary" href={url}>
            {text.signIn.with(name)}
          </a>
        ))}
        {offered.length > 0 && <p class="small muted">{text.signIn.or}</p>}
        <form class="stack wide" onSubmit={submit}>
          <label>
            {text.signIn.token}
            <input name="token" type="password" autocomplete="current-password" spellcheck={false} required aria-describedby="token-hint" />
          </label>
          {why !== null && (
            <p class="badly small" role="alert">
              {why}
            </p>
          )}
          <button type="submit" class={offered.length === 0 ? 'primary' : ''} disabled={isWorking}>
            {text.signIn.submit}
          </button>
          <p class="small muted" id="token-hint">
            {text.signIn.tokenHint} {text.signIn.kept}
          </p>
        </form>
      </div>
    </main>
  )
}

function Brand() {
  return (
    <div class="brand">
      <Logo />
      <div>
        <h1>{text.product}</h1>
        <p class="muted">{text.signIn.lead}</p>
      </div>
    </div>
  )
}

const AGAIN_MS = 5_000

/** A server that fails or is away is no reason to sign in again: the credential is kept and tried again. */
export function NoSession() {
  const now = session.value
  const again = () => void openSession(text.signIn.ended)
  useEffect(() => {
    const timer = setTimeout(again, AGAIN_MS)
    return () => clearTimeout(timer)
  }, [now])
  if (now.state !== 'failed') return null
  return (
    <main class="sign">
      <div class="panel">
        <Brand />
        <RefusalNote refusal={now.refusal} retry={again} />
        <button type="button" class="quiet" onClick={() => void signOut()}>
          {text.settings.signOut}
        </button>
      </div>
    </main>
  )
}
