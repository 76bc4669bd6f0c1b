/**
 * The anchor of a heading, as repository hosts make it: lower case, without punctuation, a hyphen
 * for each space. The site uses the same, so that a link with an anchor works in both.
 *
 * @param {string} heading
 */
export function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}
