import { useState } from 'preact/hooks'
import type { TreeAnswer, TreeNodeAnswer } from '../../src/doors/view/trajectory-shapes.ts'
import {
  formatCount,
  formatFixed,
  formatNumber,
  formatOutcome,
  formatSigned,
} from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Crumbs } from '../parts/crumbs.tsx'
import { Show } from '../parts/states.tsx'
import { endingNumber, endingsInOrder, layoutTree, type TreeLayout } from '../parts/tree-layout.ts'
import { TreePicture } from '../parts/tree-picture.tsx'
import { Visible } from '../parts/visible.tsx'

type Params = Readonly<Record<string, string>>

/** A tree: where its paths part, what became of each, and what was rewritten. */
export function TreePage({ name, params }: { name: string; params: Params }) {
  const id = params.id ?? ''
  const loaded = useData(`tree ${name} ${id}`, source => source.tree(name, id))
  return (
    <div class="page">
      <Show of={loaded} what="the tree">
        {tree => <TreeView name={name} tree={tree} params={params} />}
      </Show>
    </div>
  )
}

function TreeView({ name, tree, params }: { name: string; tree: TreeAnswer; params: Params }) {
  const ending = Math.min(Number(params.ending ?? 0) || 0, tree.endings.length - 1)
  const [pointed, setPointed] = useState<number | undefined>(undefined)
  const choose = (index: number): void =>
    goTo(hrefTo(['run', name, 'tree'], { ...params, ending: index }), { replace: true })
  const chosen = tree.endings[ending]
  const rewrites = tree.nodes.filter(node => node.rewrite)
  const layout = layoutTree(tree)
  return (
    <>
      <Crumbs run={name} group={tree.group} here={`tree ${tree.id.split('/').at(-1)}`} />
      <header class="title">
        <h1>{tree.task}</h1>
        <p class="meta">
          <span>{tree.endings.length === 1 ? 'one ending' : `${tree.endings.length} endings`}</span>
          <span>{formatCount(tree.nodes.length)} segments</span>
          <span>{counted(tree.branches.length, 'branching')}</span>
          {rewrites.length > 0 && <span>{counted(rewrites.length, 'rewrite')}</span>}
        </p>
      </header>
      <TreePicture
        tree={tree}
        layout={layout}
        ending={ending}
        pointed={pointed}
        onPoint={setPointed}
        onChoose={choose}
      />
      <div class="tree-below">
        <Endings tree={tree} layout={layout} ending={ending} onChoose={choose} />
        <section aria-label="The chosen path">
          {pointed !== undefined ? (
            <NodeNote node={tree.nodes.find(each => each.node === pointed)!} tree={tree} />
          ) : (
            chosen && <Path name={name} tree={tree} index={ending} />
          )}
        </section>
        <Branchings tree={tree} rewrites={rewrites} />
      </div>
    </>
  )
}

function counted(count: number, name: string): string {
  return count === 1 ? `1 ${name}` : `${formatCount(count)} ${name}s`
}

/** The endings in the order in which the picture shows them. */
function Endings({
  tree,
  layout,
  ending,
  onChoose,
}: {
  tree: TreeAnswer
  layout: TreeLayout
  ending: number
  onChoose: (index: number) => void
}) {
  return (
    <section>
      <h2 class="section">Endings</h2>
      <table class="endings">
        <caption class="hidden">Endings of the tree</caption>
        <thead>
          <tr>
            <th scope="col">Ending</th>
            <th scope="col" class="number">
              Reward
            </th>
            <th scope="col" class="number">
              Advantage
            </th>
            <th scope="col" class="number" title="Product of 1/width over its branchings">
              Share
            </th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {endingsInOrder(tree, layout).map(({ each, index }) => (
            <tr key={each.id} class={index === ending ? 'here' : ''}>
              <td>
                <button
                  type="button"
                  class="link"
                  aria-pressed={index === ending}
                  onClick={() => onChoose(index)}
                >
                  {endingNumber(each)}
                </button>
              </td>
              <td class="number">{formatFixed(each.reward?.total ?? null)}</td>
              <td class={`number ${(each.advantage ?? 0) < 0 ? 'bad' : ''}`}>
                {formatSigned(each.advantage)}
              </td>
              <td class="number">{formatNumber(each.share)}</td>
              <td>{formatOutcome(each.outcome)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** A path from the root to its ending, segment by segment. */
function Path({ name, tree, index }: { name: string; tree: TreeAnswer; index: number }) {
  const ending = tree.endings[index]!
  const nodes = ending.path.flatMap(number => tree.nodes.find(each => each.node === number) ?? [])
  return (
    <>
      <h2 class="section">
        Path to ending {endingNumber(ending)}{' '}
        <a class="small" href={hrefTo(['run', name, 'trajectory'], { id: ending.id })}>
          read it as a conversation
        </a>
      </h2>
      <ol class="path">
        {nodes.map(node => (
          <li key={node.node} class={node.origin}>
            <small>
              {node.origin}, {formatCount(node.length)} tokens
              {node.advantage !== null && `, advantage ${formatSigned(node.advantage)}`}
              {node.endings.length > 1 && `, shared by ${node.endings.length} endings`}
            </small>
            {node.rewrite && (
              <p class="rewrite">
                Rewritten by {node.rewrite.by}: {node.rewrite.reason}
              </p>
            )}
            <p class="text">
              <Visible text={node.text} />
            </p>
          </li>
        ))}
      </ol>
    </>
  )
}

function NodeNote({ node, tree }: { node: TreeNodeAnswer; tree: TreeAnswer }) {
  return (
    <>
      <h2 class="section">Segment {node.node}</h2>
      <ol class="path">
        <li class={node.origin}>
          <small>
            {node.origin}, tokens {formatCount(node.start)} to{' '}
            {formatCount(node.start + node.length)}
            {node.meanLogprob !== null && `, mean log p ${formatNumber(node.meanLogprob)}`}
            {node.meanEntropy !== null && `, mean entropy ${formatNumber(node.meanEntropy)}`}
            {node.advantage !== null && `, advantage ${formatSigned(node.advantage)}`}
          </small>
          <p class="text">
            <Visible text={node.text} />
          </p>
          {node.rewrite && (
            <p class="rewrite">
              Rewritten by {node.rewrite.by}: {node.rewrite.reason}
            </p>
          )}
        </li>
      </ol>
      <p class="muted">
        On the way to {node.endings.length} of {tree.endings.length} endings.
      </p>
    </>
  )
}

function Branchings({ tree, rewrites }: { tree: TreeAnswer; rewrites: readonly TreeNodeAnswer[] }) {
  if (tree.branches.length === 0 && rewrites.length === 0) return null
  return (
    <section>
      <h2 class="section">Where and why</h2>
      <ul class="events">
        {tree.branches.map(({ node, offset, at, turn, width, why, ways }) => (
          <li key={`${node}:${offset}`}>
            <b>{width} ways on</b>{' '}
            <small>
              turn {turn}, after token {formatCount(at)}
            </small>
            <p>{why}</p>
            <ol class="ways">
              {ways.map((way, index) => (
                <li key={index}>{way}</li>
              ))}
            </ol>
          </li>
        ))}
        {rewrites.map(({ node, rewrite, start, length }) => (
          <li key={`r${node}`}>
            <b>rewritten</b>{' '}
            <small>
              from token {formatCount(start)} on, {formatCount(length)} tokens
            </small>
            <p>
              by {rewrite!.by}: {rewrite!.reason}
            </p>
          </li>
        ))}
      </ul>
    </section>
  )
}
