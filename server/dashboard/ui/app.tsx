// The frame of the dashboard: the signed-in person, the rail of pages, the head with the search, and the page of the
// address, whose code is loaded when it is first opened.

import type { FunctionComponent } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso'
import { age } from './format.ts'
import { ClustersPage } from './pages/clusters.tsx'
import { FleetPage } from './pages/fleet.tsx'
import { NotFound } from './pages/not-found.tsx'
import { NoSession, SignIn } from './pages/sign-in.tsx'
import { FullText } from './parts/full-text.tsx'
import { LegendDialog } from './parts/legend-dialog.tsx'
import { Palette } from './parts/palette.tsx'
import { Rail } from './parts/rail.tsx'
import { actionAsked } from './state/actions.ts'
import { hurryLive, lostSinceMs } from './state/live.ts'
import { nowMs } from './state/now.ts'
import { nextTask } from './state/pause.ts'
import { ROOT } from './state/place.ts'
import { session } from './state/session.ts'
import { text } from './words/first.ts'

const ClusterPage = lazy(() => import('./pages/cluster.tsx').then((module) => module.ClusterPage))
const ServicesPage = lazy(() => import('./pages/services.tsx').then((module) => module.ServicesPage))
const ServicePage = lazy(() => import('./pages/service.tsx').then((module) => module.ServicePage))
const PlacementPage = lazy(() => import('./pages/placement.tsx').then((module) => module.PlacementPage))
const RepositoriesPage = lazy(() => import('./pages/repositories.tsx').then((module) => module.RepositoriesPage))
const RepositoryPage = lazy(() => import('./pages/repository.tsx').then((module) => module.RepositoryPage))
const HistoryPage = lazy(() => import('./pages/history.tsx').then((module) => module.HistoryPage))
const RenderPage = lazy(() => import('./pages/render.tsx').then((module) => module.RenderPage))
const QueryPage = lazy(() => import('./pages/query.tsx').then((module) => module.QueryPage))
const NotificationsPage = lazy(() => import('./pages/notifications.tsx').then((module) => module.NotificationsPage))
const NeedsPage = lazy(() => import('./pages/needs.tsx').then((module) => module.NeedsPage))
const ConfirmationPage = lazy(() => import('./pages/confirmation.tsx').then((module) => module.ConfirmationPage))
const ActivityPage = lazy(() => import('./pages/activity.tsx').then((module) => module.ActivityPage))
const AccessPage = lazy(() => import('./pages/access.tsx').then((module) => module.AccessPage))
const JoinPage = lazy(() => import('./pages/join.tsx').then((module) => module.JoinPage))
const SettingsPage = lazy(() => import('./pages/settings.tsx').then((module) => module.SettingsPage))

/** Code of the page of this address, fetched while the server is asked for the signed-in person. */
const FIRST: Readonly<Record<string, { preload(): unknown }>> = {
  services: ServicesPage,
  repositories: RepositoriesPage,
  'needs-you': NeedsPage,
  query: QueryPage,
  notifications: NotificationsPage,
  activity: ActivityPage,
  access: AccessPage,
}
FIRST[location.pathname.slice(ROOT.length).replace(/\/$/, '')]?.preload()

export function App() {
  const { state } = session.value
  if (state === 'starting') return null
  if (state === 'out') return <SignIn />
  if (state === 'failed') return <NoSession />
  return (
    <LocationProvider scope={ROOT}>
      <Frame />
    </LocationProvider>
  )
}

function Frame() {
  const { path } = useLocation()
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  const hasFrame = useFrame()
  // Another page begins at its top, and the keyboard continues from there.
  useEffect(() => {
    if (isFirst.current) isFirst.current = false
    else main.current?.focus({ preventScroll: true })
    window.scrollTo(0, 0)
  }, [path])
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        {text.nav.skip}
      </button>
      <Rail />
      <main class="main" id="main" tabIndex={-1} ref={main}>
        {hasFrame && <Pages />}
      </main>
      <Palette />
      <LegendDialog />
      <Actions />
      <Lost />
      <FullText />
    </div>
  )
}

/** False for the first render: the frame around the page is drawn in one task, and the page in the next one. */
function useFrame(): boolean {
  const [hasFrame, setFrame] = useState(false)
  useLayoutEffect(() => void nextTask().then(() => setFrame(true)), [])
  return hasFrame
}

const Pages = () => (
  <Router>
    <Route path={ROOT} component={FleetPage} />
    <Route path={`${ROOT}clusters`} component={ClustersPage} />
    <Route path={`${ROOT}clusters/:cluster`} component={ClusterPage} />
    <Route path={`${ROOT}clusters/:cluster/:project/:service`} component={PlacementPage} />
    <Route path={`${ROOT}clusters/:cluster/history`} component={HistoryPage} />
    <Route path={`${ROOT}clusters/:cluster/:project/:service/history`} component={HistoryPage} />
    <Route path={`${ROOT}services`} component={ServicesPage} />
    <Route path={`${ROOT}services/:project/:service`} component={ServicePage} />
    <Route path={`${ROOT}services/:project/:service/render`} component={RenderPage} />
    <Route path={`${ROOT}query`} component={QueryPage} />
    <Route path={`${ROOT}notifications`} component={NotificationsPage} />
    <Route path={`${ROOT}repositories`} component={RepositoriesPage} />
    <Route path={`${ROOT}repositories/:project/:repository`} component={RepositoryPage} />
    <Route path={`${ROOT}needs-you`} component={NeedsPage} />
    <Route path={`${ROOT}needs-you/:id`} component={ConfirmationPage} />
    <Route path={`${ROOT}activity`} component={ActivityPage} />
    <Route path={`${ROOT}access`} component={AccessPage} />
    <Route path={`${ROOT}join`} component={JoinPage} />
    <Route path={`${ROOT}settings`} component={SettingsPage} />
    <Route default component={NotFound} />
  </Router>
)

/** The code of the dialogs is loaded with the first action. */
function Actions() {
  const [Host, setHost] = useState<FunctionComponent | null>(null)
  const isAsked = actionAsked.value !== null
  useEffect(() => {
    if (isAsked && Host === null) void import('./parts/action-host.tsx').then((module) => setHost(() => module.ActionHost))
  }, [isAsked, Host])
  return isAsked && Host !== null ? <Host /> : null
}

/** Lies over the page, so that nothing moves. */
function Lost() {
  const sinceMs = lostSinceMs.value
  return (
    <div class="lost-place" role="status">
      {sinceMs !== null && (
        <div class="lost">
          <span>{text.live.lost(age(sinceMs, nowMs.value))}</span>
          <button type="button" onClick={hurryLive}>
            {text.live.retry}
          </button>
        </div>
      )}
    </div>
  )
}
