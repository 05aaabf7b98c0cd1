// Where the dashboard starts in the browser.
import './style/tokens.css'
import './style/base.css'
import './style/marks.css'
import './style/shell.css'
import './style/fleet.css'
import './style/parts.css'
import './style/lists.css'
import './style/detail.css'
import './style/live.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { openSession } from './state/account.ts'
import { applyTheme } from './state/theme.ts'
import { text } from './words/first.ts'

applyTheme()
void openSession(text.signIn.ended)
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
