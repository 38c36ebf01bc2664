import { homedir } from 'node:os'

/** A path whose tilde means the home folder: shells leave one in the middle of a word alone, as in `tau:retail,root=~/data`. */
export function fromHome(path: string): string {
  return path.replace(/^~(?=\/|$)/, homedir())
}
