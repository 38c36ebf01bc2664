/** Waits until another process has got somewhere; gives false where `isOver` says that it never will. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  isOver: () => boolean = () => false,
): Promise<boolean> {
  while (!(await isSo())) {
    if (isOver()) return false
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return true
}
