import { useEffect, useState } from 'preact/hooks'
import { goTo, hrefTo } from '../data/route.ts'
import { useSource } from '../data/use-data.ts'

type Drop =
  | { readonly kind: 'idle' }
  | { readonly kind: 'over' }
  | { readonly kind: 'reading'; readonly name: string }
  | { readonly kind: 'failed'; readonly problem: string }

/** Accepts a file dropped anywhere on the page and opens it as a run, in any format that `import` reads. */
export function DropZone() {
  const source = useSource()
  const [drop, setDrop] = useState<Drop>({ kind: 'idle' })
  useEffect(() => {
    if (source.isFile) return
    const hasFiles = (event: DragEvent): boolean =>
      event.dataTransfer?.types.includes('Files') ?? false
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setDrop({ kind: 'over' })
    }
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setDrop({ kind: 'idle' })
    }
    const take = (event: DragEvent): void => {
      const file = event.dataTransfer?.files[0]
      if (!file) return
      event.preventDefault()
      void openFile(source.importFile, file, setDrop)
    }
    addEventListener('dragover', over)
    addEventListener('dragleave', leave)
    addEventListener('drop', take)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('dragleave', leave)
      removeEventListener('drop', take)
    }
  }, [source])
  if (drop.kind === 'idle') return null
  if (drop.kind === 'over') return <div class="drop">Drop it to open it</div>
  if (drop.kind === 'reading')
    return (
      <div class="drop" role="status">
        Reading {drop.name}
      </div>
    )
  return (
    <div class="drop failed" role="alert">
      <p>{drop.problem}</p>
      <button type="button" onClick={() => setDrop({ kind: 'idle' })}>
        Close
      </button>
    </div>
  )
}

/** Reads a file into a run and goes there. */
export async function openFile(
  importFile: (file: File, format: string) => Promise<{ readonly run: string }>,
  file: File,
  set: (drop: Drop) => void,
): Promise<void> {
  set({ kind: 'reading', name: file.name })
  try {
    const { run } = await importFile(file, '')
    set({ kind: 'idle' })
    // The list of runs has changed: the page is opened anew at the new one.
    goTo(hrefTo(['run', run]))
    location.reload()
  } catch (error) {
    set({ kind: 'failed', problem: (error as Error).message })
  }
}
