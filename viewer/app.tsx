import { useEffect, useRef } from 'preact/hooks'
import type { RunEntry } from '../src/doors/view/answers.ts'
import { hrefTo, type Route, useRoute } from './data/route.ts'
import { useData, VersionContext } from './data/use-data.ts'
import { useLive } from './data/use-live.ts'
import { ComparePage } from './pages/compare.tsx'
import { GroupPage } from './pages/group.tsx'
import { GroupsPage } from './pages/groups.tsx'
import { RunPage } from './pages/run.tsx'
import { RunsPage } from './pages/runs.tsx'
import { SiblingsPage } from './pages/siblings.tsx'
import { TrajectoryPage } from './pages/trajectory.tsx'
import { TreePage } from './pages/tree.tsx'
import { TryPage } from './pages/try.tsx'
import { DropZone } from './parts/drop-zone.tsx'
import { Problem } from './parts/states.tsx'
import { TopBar } from './parts/top-bar.tsx'

/** The whole page: a bar, and the view that the address names. */
export function App() {
  const route = useRoute()
  const runs = useData('runs', source => source.runs())
  const known = runs.kind === 'ready' ? runs.value : []
  const name = route.path[0] === 'run' ? route.path[1] : undefined
  const { version, isLive } = useLive(name, known.find(run => run.name === name)?.status)
  useTitle(route)
  const main = useRef<HTMLElement>(null)
  return (
    <VersionContext.Provider value={version}>
      <a class="skip" href={location.hash} onClick={() => main.current?.focus()}>
        Skip to content
      </a>
      <TopBar route={route} runs={known} isLive={isLive} />
      <DropZone />
      <main ref={main} tabIndex={-1} id="content">
        {runs.kind === 'failed' ? (
          <Problem text={runs.problem} />
        ) : (
          <View route={route} runs={known} isLoaded={runs.kind === 'ready'} />
        )}
      </main>
    </VersionContext.Provider>
  )
}

interface ViewProps {
  readonly route: Route
  readonly runs: readonly RunEntry[]
  readonly isLoaded: boolean
}

function View({ route, runs, isLoaded }: ViewProps) {
  const [first, name, page] = route.path
  const { params } = route
  if (first === 'compare') return <ComparePage params={params} runs={runs} />
  if (first !== 'run' || name === undefined) return <RunsPage runs={runs} isLoaded={isLoaded} />
  switch (page) {
    case undefined:
      return <RunPage name={name} />
    case 'groups':
      return <GroupsPage name={name} params={params} />
    case 'group':
      return <GroupPage name={name} id={params.id ?? ''} />
    case 'siblings':
      return <SiblingsPage name={name} a={params.a ?? ''} b={params.b ?? ''} />
    case 'trajectory':
      return <TrajectoryPage name={name} params={params} />
    case 'tree':
      return <TreePage name={name} params={params} />
    case 'try':
      return <TryPage name={name} params={params} />
    default:
      return (
        <Problem
          text={`There is no view called “${page}”.`}
          href={hrefTo(['run', name])}
          link="To the run"
        />
      )
  }
}

const titles: Readonly<Record<string, string>> = {
  groups: 'Groups',
  group: 'Group',
  siblings: 'Side by side',
  trajectory: 'Trajectory',
  tree: 'Tree',
  try: 'Try',
}

function useTitle({ path, params }: Route): void {
  const [first, name, page] = path
  const id = params.id ?? ''
  const here =
    first === 'compare' ? 'Compare' : [id, titles[page ?? ''], name].filter(Boolean).join(' · ')
  useEffect(() => {
    document.title = here === '' ? 'Espalier' : `${here} · Espalier`
  }, [here])
}
