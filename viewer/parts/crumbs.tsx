import { hrefTo } from '../data/route.ts'

/** Breadcrumbs: the run's groups, the group, the trajectory. */
export function Crumbs({ run, group, here }: { run: string; group?: string; here: string }) {
  return (
    <nav class="crumbs" aria-label="Where this is">
      <a href={hrefTo(['run', run, 'groups'])}>Groups</a>
      {group !== undefined && (
        <>
          <i aria-hidden="true">/</i>
          <a href={hrefTo(['run', run, 'group'], { id: group })}>{group}</a>
        </>
      )}
      <i aria-hidden="true">/</i>
      <span aria-current="page">{here}</span>
    </nav>
  )
}
