#!/usr/bin/env bash
# Look for barriers with axe-core on every page of the documentation, and on reports of a certificate, of several classes,
# of numbers and of scores: in windows of 1280 and 360 pixels, light and dark. Exit code 1 if one is found.
#
#     jobs/try_pages.sh
#
# Needs the package registries of Python and of Node.js, npm, and Chromium (or CHROMIUM names it). It takes about ten
# minutes. Nothing is left behind but build/docs.
source "$(dirname "$0")/environment"

die() { echo "$1" >&2; exit 1; }
type npm &> /dev/null || die "npm not found: install Node.js"
CHROMIUM=${CHROMIUM:-$(type -P chromium || type -P chromium-browser || type -P google-chrome || true)}
[ -n "$CHROMIUM" ] || die "chromium not found: apt-get install chromium, or name a browser in CHROMIUM"
export CHROMIUM

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/ckcvXXXXXX")
trap 'rm -rf "$scratch"' EXIT
(cd "$scratch" && npm install --no-audit --no-fund --silent axe-core@4 playwright-core@1 > log 2>&1) ||
    { cat "$scratch/log" >&2; die "axe-core and playwright-core cannot be installed"; }
./jobs/docs > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; die "the documentation cannot be built"; }
make_report() {  # NAME COMMAND ...
    { ckcv "${@:2}" --out "$scratch/$1" && ckcv report "$scratch/$1"; } &> "$scratch/log" ||
        { cat "$scratch/log" >&2; die "no report of ${*:2}"; }
}
make_report certificate run sklearn:breast_cancer --learner linear --k 3,5 --n-splits 3 --claim refit,sensitivity,auc --yes
make_report classes run sklearn:iris --learner tree --k 3 --n-splits 3 --yes
make_report numbers run sklearn:diabetes --learner ridge --clip 200 --claim refit,within:0.9 --k 3 --n-splits 3 --yes
make_report scores evaluate sklearn:wine --learner linear,tree --resampling kfold:5 --measure zero_one,log_loss
{ echo y,p; for _ in {1..30}; do printf '%s\n' ill,ill well,ill well,well; done; } > "$scratch/given.csv"
ckcv judge "$scratch/given.csv" --label y --prediction p --claim error,recall --out "$scratch/given.html" &> "$scratch/log" || die "no page of predictions"

cat > "$scratch/look.js" <<'JS'
const {chromium} = require("playwright-core");
(async () => {
    const browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"]});
    let views = 0, found = 0;
    for (const width of [1280, 360]) {
        for (const colorScheme of ["light", "dark"]) {
            // a report lets no script run, and axe-core is one
            const context = await browser.newContext({viewport: {width, height: 900}, colorScheme, bypassCSP: true});
            for (const file of process.argv.slice(2)) {
                const page = await context.newPage();
                await page.goto("file://" + file);
                await page.addScriptTag({path: require.resolve("axe-core/axe.min.js")});
                for (const {id, nodes} of (await page.evaluate(() => axe.run())).violations) {
                    found += nodes.length;
                    console.log(`${file} at ${width}, ${colorScheme}: ${id} ${nodes.length} times, ${nodes[0].html.slice(0, 150)}`);
                }
                views += 1;
                await page.close();
            }
            await context.close();
        }
    }
    await browser.close();
    console.log(`${process.argv.length - 2} pages in ${views} views: ${found} violations`);
    process.exit(found ? 1 : 0);
})();
JS
find "$PWD/build/docs" "$scratch" -name '*.html' -not -path '*/_static/*' -not -path '*/node_modules/*' -print0 | sort -z |
    xargs -0 node "$scratch/look.js"
