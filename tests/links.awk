# Checks the links and anchors between Markdown documents. Standard input names
# every file of the tree, one a line; the arguments are "-" and the documents.
# Prints one line for each link that leads nowhere; with -v list=1 instead every
# link to a heading, as file#anchor.

function slug(heading) { # as GitHub and mdbook make anchors
    gsub(/\]\([^)]*\)/, "", heading)
    heading = tolower(heading)
    gsub(/[^a-z0-9 _\200-\377-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

# A path without "." and "..", or "" if it leaves the tree.
function normal(path,    parts, n, i, kept, result) {
    n = split(path, parts, "/")
    kept = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "" || parts[i] == ".") continue
        if (parts[i] != "..") parts[++kept] = parts[i]
        else if (--kept < 0) return ""
    }
    for (i = 1; i <= kept; i++) result = result (i > 1 ? "/" : "") parts[i]
    return result
}

FILENAME == "-" {
    exists[$0] = 1
    while (sub(/\/[^\/]*$/, "")) exists[$0] = 1
    next
}
FNR == 1 { fenced = 0; folder = FILENAME; if (!sub(/\/[^\/]*$/, "", folder)) folder = "" }
/^ *```/ { fenced = !fenced; next }
fenced { next }
/^#+ / {
    heading = $0
    sub(/^#+ +/, "", heading)
    anchor = slug(heading)
    count = seen[FILENAME, anchor]++
    anchors[FILENAME, count ? anchor "-" count : anchor] = 1
}
{
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^) ]*\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (target ~ /^[a-z]+:/) continue
        links++
        from[links] = FILENAME; at[links] = FNR; to[links] = target
        path = target
        sub(/#.*/, "", path)
        file[links] = path == "" ? FILENAME : normal(folder "/" path)
        part[links] = target ~ /#/ ? substr(target, index(target, "#") + 1) : ""
    }
}
END {
    if (list) {
        for (i = 1; i <= links; i++) if (part[i] != "") print file[i] "#" part[i]
        exit
    }
    for (i = 1; i <= links; i++) {
        where = from[i] ":" at[i] ": " to[i]
        if (!(file[i] in exists)) print where " leads to no file"
        else if (from[i] ~ /^docs\// && file[i] !~ /^docs\//) print where " leaves docs/, which the book is made of"
        else if (part[i] != "" && !((file[i], part[i]) in anchors)) print where " leads to no heading"
        if (from[i] == "docs/SUMMARY.md") listed[file[i]] = 1
    }
    for (path in exists)
        if (path ~ /^docs\/.*\.md$/ && path != "docs/SUMMARY.md" && !(path in listed)) print path " is not in docs/SUMMARY.md"
    if (!links) print "no links found"
}
